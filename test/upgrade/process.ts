import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { AuthService } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import { BillingService } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { freePort } from "../support/free-port.ts";

/** A process of the real command, of this code or of another checkout's. */
export interface GenmeshProcess extends AsyncDisposable {
  baseUrl: string;
  auth: ReturnType<typeof createClient<typeof AuthService>>;
  billing: ReturnType<typeof createClient<typeof BillingService>>;
  /** Sends SIGKILL. Resolves when the process has ended. */
  kill(): Promise<void>;
}

export interface GenmeshOptions {
  /** The folder of the code that runs. */
  checkout: string;
  dataDir: string;
  catalogFile: string;
  /** The demo account's key, for a new directory. */
  apiKey: string;
  adminToken: string;
  /** The milliseconds by which its clock is ahead of the machine's. Negative: behind. */
  aheadMs: number;
  /** `mongodb://…`. Undefined: SQLite in the data directory. */
  databaseUrl?: string | undefined;
}

/** Starts role `all` on free ports, and resolves when it prints that it is ready. */
export async function startGenmesh(options: GenmeshOptions): Promise<GenmeshProcess> {
  const { checkout, dataDir, catalogFile, apiKey, adminToken, aheadMs, databaseUrl } = options;
  const [grpcPort, opsPort] = [await freePort(), await freePort()];
  const clock = fileURLToPath(new URL("../support/clock-ahead.ts", import.meta.url));
  const child = spawn(process.execPath, ["--import", clock, "services/host/main.ts"], {
    cwd: checkout,
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      PATH: process.env.PATH,
      PORT: "0",
      GRPC_PORT: String(grpcPort),
      GENMESH_OPS_PORT: String(opsPort),
      GENMESH_DATA_DIR: dataDir,
      GENMESH_CATALOG: catalogFile,
      GENMESH_BOOTSTRAP_API_KEY: apiKey,
      GENMESH_BOOTSTRAP_USD_MICROS: String(demoUsdMicros),
      GENMESH_BOOTSTRAP_CREDITS: String(demoCredits),
      GENMESH_ADMIN_TOKEN: adminToken,
      ...(databaseUrl ? { GENMESH_DATABASE_URL: databaseUrl } : {}),
      TEST_CLOCK_AHEAD_MS: String(aheadMs),
    },
  });
  const exited = once(child, "exit");
  let [said, complaint] = ["", ""];
  child.stderr.on("data", (chunk) => {
    complaint += chunk;
  });
  const ready = new Promise<string>((resolve, reject) => {
    child.stdout.on("data", (chunk) => {
      said += chunk;
      const url = /http:\/\/\S+\/v1/.exec(said)?.[0];
      if (url) resolve(url);
    });
    void exited.then(([code]) => reject(new Error(`ended with ${code}: ${complaint}`)));
  });
  const transport = createGrpcTransport({
    baseUrl: `http://127.0.0.1:${grpcPort}`,
    interceptors: [
      (next) => (request) => {
        request.header.set("authorization", `Bearer ${adminToken}`);
        return next(request);
      },
    ],
  });
  const kill = async () => {
    child.kill("SIGKILL");
    await exited;
  };
  return {
    baseUrl: await ready,
    auth: createClient(AuthService, transport),
    billing: createClient(BillingService, transport),
    kill,
    [Symbol.asyncDispose]: kill,
  };
}

/** The first balance of the demo account. */
export const [demoUsdMicros, demoCredits] = [5_000_000, 1_000];
