import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { AuthService } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import { BillingService } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { programFile } from "../support/bundles.ts";
import { freePort } from "../support/free-port.ts";
import { runOperatorCommand } from "../support/operator-command.ts";
import { type Caller, createCaller } from "./caller.ts";
import { upstreamKeys } from "./catalog.ts";

/** Settings of a process. */
export interface ProcessOptions {
  dataDir: string;
  catalogFile: string;
  /** The milliseconds by which its clock is ahead. Default 0. */
  aheadMs?: number;
  /** Variables in addition to the usual ones. */
  env?: Readonly<Record<string, string>>;
}

/** A process of the real command. */
export interface HostProcess {
  baseUrl: string;
  /** The demo account's. */
  caller: Caller;
  auth: ReturnType<typeof createClient<typeof AuthService>>;
  billing: ReturnType<typeof createClient<typeof BillingService>>;
  /** The standard output of an operator's command, whose exit code must be 0. */
  command(args: readonly string[]): Promise<string>;
  /** Sends SIGKILL. Resolves when the process has ended. */
  kill(): Promise<void>;
  /** Sends SIGTERM. Resolves with the exit code, or null where the process had to be killed after 10 s. */
  stop(): Promise<number | null>;
}

/** The first balance of the demo account in these processes, in USD micros. */
export const openingUsdMicros = 10_000_000;
/** The same in credits. */
export const openingCredits = 1_000;

const stopWithinMs = 10_000;
const root = fileURLToPath(new URL("../..", import.meta.url));
const clockAhead = fileURLToPath(new URL("../support/clock-ahead.ts", import.meta.url));
const apiKey = "crash-test-key-0123456789";
const adminToken = "crash-test-admin-token";

/** Starts the process of `npm start` on free ports, and resolves when it prints that it is ready. */
export async function startProcess(options: ProcessOptions): Promise<HostProcess> {
  const grpcPort = await freePort();
  const child = spawn(
    process.execPath,
    ["--import", clockAhead, programFile("services/host/main.ts")],
    {
      cwd: root,
      stdio: ["ignore", "pipe", "pipe"],
      env: {
        PATH: process.env.PATH,
        PORT: "0",
        GRPC_PORT: String(grpcPort),
        GENMESH_OPS_PORT: "0",
        GENMESH_DATA_DIR: options.dataDir,
        GENMESH_CATALOG: options.catalogFile,
        GENMESH_BOOTSTRAP_API_KEY: apiKey,
        GENMESH_BOOTSTRAP_USD_MICROS: String(openingUsdMicros),
        GENMESH_BOOTSTRAP_CREDITS: String(openingCredits),
        GENMESH_ADMIN_TOKEN: adminToken,
        TEST_CLOCK_AHEAD_MS: String(options.aheadMs ?? 0),
        ...upstreamKeys,
        ...options.env,
      },
    },
  );
  const exited = once(child, "exit");
  const baseUrl = await readyUrl(child);
  const end = async (signal: NodeJS.Signals) => {
    child.kill(signal);
    const late = setTimeout(() => child.kill("SIGKILL"), stopWithinMs);
    await exited;
    clearTimeout(late);
    return child.exitCode;
  };
  const who = { baseUrl, key: apiKey, accountId: "", keyId: "" };
  return {
    baseUrl,
    caller: createCaller(who, () => {}),
    auth: createClient(AuthService, transportTo(grpcPort)),
    billing: createClient(BillingService, transportTo(grpcPort)),
    command: (args) => outputOf([...args, "--server", `http://127.0.0.1:${grpcPort}`]),
    kill: async () => void (await end("SIGKILL")),
    stop: () => end("SIGTERM"),
  };
}

/** The standard output of a command. Rejects with its standard error. */
async function outputOf(args: readonly string[]): Promise<string> {
  const { code, out, err } = await runOperatorCommand(args, { GENMESH_ADMIN_TOKEN: adminToken });
  if (code !== 0) throw new Error(`ended with ${code}: ${err}`);
  return out;
}

async function readyUrl(child: ChildProcess): Promise<string> {
  let [said, complaint] = ["", ""];
  child.stderr?.on("data", (chunk) => {
    complaint += chunk;
  });
  return new Promise((resolve, reject) => {
    child.stdout?.on("data", (chunk) => {
      said += chunk;
      const url = /http:\/\/\S+\/v1/.exec(said)?.[0];
      if (url) resolve(url);
    });
    child.once("exit", (code) => reject(new Error(`ended with ${code}: ${complaint}`)));
  });
}

function transportTo(port: number) {
  return createGrpcTransport({
    baseUrl: `http://127.0.0.1:${port}`,
    interceptors: [
      (next) => (request) => {
        request.header.set("authorization", `Bearer ${adminToken}`);
        return next(request);
      },
    ],
  });
}
