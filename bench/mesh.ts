import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { tokenInterceptor } from "#kit/rpc/access.ts";
import { AuthService } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import { BillingService, Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { startProgram } from "./processes.ts";

/** A genmesh in a process of its own, in front of the bench's upstream. */
export interface BenchMesh extends AsyncDisposable {
  port: number;
  /** Keys of as many accounts; the requests go round them. */
  keys: string[];
  /** Seconds of CPU that it has used so far. */
  cpuSeconds(): Promise<number>;
}

const adminToken = "admin-token-of-the-bench";
/** Accounts that the load is spread over. */
const accounts = 16;
/** More than any run can spend. */
const fundsMicros = 1_000_000_000_000n;

/** Starts it on a new data directory, as `npm start` would but for ports, catalog and accounts. */
export async function startMesh(options: {
  upstreamPort: number;
  core: number;
  profileFolder: string | undefined;
}): Promise<BenchMesh> {
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "genmesh-bench-"));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const catalog = join(folder, "catalog.json");
  await writeFile(catalog, JSON.stringify(catalogFor(options.upstreamPort)));
  const grpcPort = await freePort();
  const { profileFolder } = options;
  const child = stack.use(
    await startProgram("../services/host/main.ts", {
      core: options.core,
      nodeArgs: profileFolder ? ["--cpu-prof", `--cpu-prof-dir=${profileFolder}`] : [],
      env: {
        HOST: "127.0.0.1",
        PORT: "0",
        GRPC_PORT: `${grpcPort}`,
        GENMESH_DATA_DIR: join(folder, "data"),
        GENMESH_CATALOG: catalog,
        GENMESH_ADMIN_TOKEN: adminToken,
      },
    }),
  );
  const origin = new URL(/http:\S+/.exec(child.firstLine)?.[0] ?? "").origin;
  const keys = await makeKeys(`http://127.0.0.1:${grpcPort}`);
  const owned = stack.move();
  return {
    port: Number(new URL(origin).port),
    keys,
    async cpuSeconds() {
      const text = await (await fetch(`${origin}/metrics`)).text();
      return Number(/^process_cpu_seconds_total (\S+)$/m.exec(text)?.[1]);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function makeKeys(baseUrl: string): Promise<string[]> {
  const transport = createGrpcTransport({ baseUrl, interceptors: [tokenInterceptor(adminToken)] });
  const auth = createClient(AuthService, transport);
  const billing = createClient(BillingService, transport);
  const make = async (_: unknown, i: number) => {
    const { account } = await auth.createAccount({ name: `bench ${i}` });
    const accountId = account?.accountId ?? "";
    const unit = Unit.USD_MICROS;
    await billing.grant({ accountId, unit, amount: fundsMicros, operationId: "bench" });
    const { secret } = await auth.createKey({ accountId, requestsPerMinute: 1_000_000 });
    return secret;
  };
  return Promise.all(Array.from({ length: accounts }, make));
}

function catalogFor(upstreamPort: number): object {
  const price = 1_000_000;
  return {
    developerPrompt: "Be brief.",
    upstreams: {
      mock: { protocol: "openai", baseUrl: `http://127.0.0.1:${upstreamPort}/v1` },
    },
    models: [
      {
        id: "bench",
        kind: "chat",
        upstream: "mock",
        maxInputTokens: 100_000,
        maxOutputTokens: 4_000,
        safetyMarginTokens: 100,
        pricing: {
          inputUsdMicrosPerMillionTokens: price,
          cachedInputUsdMicrosPerMillionTokens: price,
          outputUsdMicrosPerMillionTokens: price,
        },
      },
    ],
  };
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
