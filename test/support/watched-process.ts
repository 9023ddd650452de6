import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { AuthService } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import { BillingService, Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { freePort } from "./free-port.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const loopWatch = fileURLToPath(new URL("./loop-watch.ts", import.meta.url));
const adminToken = "watched-admin-token";

/** The real command in a process of its own that watches its event loop. */
export interface WatchedProcess extends AsyncDisposable {
  /** Ends in `/v1`. */
  baseUrl: string;
  /** The operator's token. */
  adminToken: string;
  pid: number;
  /** The longest delay of its event loop in ms since the last call. */
  worstDelayMs(): Promise<number>;
  /** The memory that it keeps, in MiB: all that can be collected has been. */
  residentMib(): Promise<number>;
  /** The key of a new account, by default with money. */
  account(money?: { usdMicros?: bigint; credits?: bigint }): Promise<{ key: string; id: string }>;
}

/** Starts role `all` on a new data directory with this catalog. */
export async function startWatched(
  catalog: object,
  env: Record<string, string> = {},
): Promise<WatchedProcess> {
  await using stack = new AsyncDisposableStack();
  const dataDir = await mkdtemp(join(tmpdir(), "genmesh-watched-"));
  stack.defer(() => rm(dataDir, { recursive: true, force: true }));
  const catalogFile = join(dataDir, "catalog.json");
  await writeFile(catalogFile, JSON.stringify(catalog));
  const grpcPort = await freePort();
  const child = spawn(
    process.execPath,
    ["--expose-gc", "--import", loopWatch, "services/host/main.ts"],
    {
      cwd: root,
      stdio: ["ignore", "pipe", "pipe", "ipc"],
      env: {
        PATH: process.env.PATH,
        PORT: "0",
        GRPC_PORT: String(grpcPort),
        GENMESH_OPS_PORT: String(await freePort()),
        GENMESH_DATA_DIR: dataDir,
        GENMESH_CATALOG: catalogFile,
        GENMESH_ADMIN_TOKEN: adminToken,
        ...env,
      },
    },
  );
  const exited = once(child, "exit");
  stack.defer(async () => {
    child.kill("SIGKILL");
    await exited;
  });
  let complaint = "";
  child.stderr?.on("data", (chunk) => {
    complaint = `${complaint}${chunk}`.slice(-10_000);
  });
  const baseUrl = await new Promise<string>((resolve, reject) => {
    let said = "";
    child.stdout?.on("data", (chunk) => {
      said += chunk;
      const url = /http:\/\/\S+\/v1/.exec(said)?.[0];
      if (url) resolve(url);
    });
    child.once("exit", (code) => reject(new Error(`ended with ${code}: ${complaint}`)));
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
  const auth = createClient(AuthService, transport);
  const billing = createClient(BillingService, transport);
  const owned = stack.move();
  let accounts = 0;
  return {
    baseUrl,
    adminToken,
    pid: child.pid ?? 0,
    async worstDelayMs() {
      child.send("loop");
      const [{ loopMs }] = (await once(child, "message")) as [{ loopMs: number }];
      return loopMs;
    },
    async residentMib() {
      child.send("memory");
      const [{ residentBytes }] = (await once(child, "message")) as [{ residentBytes: number }];
      return residentBytes / 2 ** 20;
    },
    async account({ usdMicros = 10n ** 12n, credits = 10n ** 6n } = {}) {
      const made = await auth.createAccount({ name: `a${++accounts}` });
      const id = made.account?.accountId ?? "";
      const grants: [Unit, bigint][] = [
        [Unit.USD_MICROS, usdMicros],
        [Unit.CREDITS, credits],
      ];
      for (const [unit, amount] of grants) {
        if (amount === 0n) continue;
        await billing.grant({ accountId: id, unit, amount, operationId: `opening-${unit}` });
      }
      return { key: made.secret, id };
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
