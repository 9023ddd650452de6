import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect as inspectValue } from "node:util";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { beforeEach } from "vitest";
import { createLogger } from "#kit/base/logger.ts";
import { createMetrics } from "#kit/base/metrics.ts";
import { traceFields } from "#kit/telemetry/spans.ts";
import {
  AuthService,
  type CreateKeyRequestSchema,
} from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import { BillingService, Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { MediaService } from "#proto/genmesh/media/v1/media_service_pb.ts";
import { TextService } from "#proto/genmesh/text/v1/text_service_pb.ts";
import { envToConfig } from "../../services/host/config.ts";
import { openTelemetry } from "../../services/host/context.ts";
import { type RoleAllProcess, startRoleAll } from "../../services/host/role-all.ts";
import { jumpClock } from "../support/jump-clock.ts";
import { startMeshProcesses } from "../support/mesh.ts";
import { startMeshRoles } from "../support/mesh-roles.ts";
import {
  type Behaviour,
  closedBaseUrl,
  type Script,
  type ScriptedUpstream,
  type SeenRequest,
  startScriptedUpstream,
} from "../support/scripted-upstream.ts";
import { until } from "../support/until.ts";
import { type Caller, createCaller } from "./caller.ts";
import { type CatalogObject, promptMark, testCatalog, upstreamKeys } from "./catalog.ts";

/**
 * Names a running server for the tests that can run against one: its base URL, ending in `/v1`, and a key with all rights. (Not BASE_URL,
 * because the test runner sets that itself.)
 */
const { GENMESH_TEST_BASE_URL: remoteUrl, GENMESH_TEST_API_KEY: remoteKey } = process.env;
/** Runs every role by itself, with this number of replicas, on real servers. test/support/mesh-roles.ts starts them. */
const { GENMESH_TEST_MESH: meshReplicas } = process.env;

/** Settings of a world. */
export interface WorldOptions {
  /** YAML, or a change of the usual catalog. */
  catalog?: string | ((usual: CatalogObject) => CatalogObject);
  /** Versions in the store are the master of the catalog. Default: its file is. */
  isCatalogStored?: boolean;
  /** Variables in addition to those that a world needs. */
  env?: Record<string, string>;
}

/** The first balance of a new caller. */
export interface NewCaller {
  /** Default 10 dollars. */
  usdMicros?: bigint;
  /** Default none. */
  credits?: bigint;
}

/** The whole installation behind a public address, with its clients. */
export interface World extends AsyncDisposable {
  baseUrl: string;
  /** Those of every gateway. The first one is `baseUrl`. */
  baseUrls: string[];
  /** The address of the metrics of the process behind `baseUrl`. Undefined where a test uses a running server. */
  opsUrl: string | undefined;
  /** The addresses of the metrics of all processes. */
  opsUrls: string[];
  /** Only for {@link oneProcessOnly}. */
  mesh: RoleAllProcess;
  /** Moves the clock forward, and waits until the parts of the process have answered each other again. */
  later(ms: number): Promise<void>;
  /** Sets the clock of the one process ahead (or back), without any time passing. Only for {@link oneProcessOnly}. */
  setClock(ms: number): void;
  /** Milliseconds since the epoch by this world's clock. */
  now(): number;
  /** The upstream of most models. */
  upstream: ScriptedUpstream;
  /** The second upstream of models that have one. */
  backup: ScriptedUpstream;
  admin: Admin;
  /** Lines of the log so far. */
  log: string[];
  /** A caller of a new account with its first key. */
  caller(begin?: NewCaller): Promise<Caller>;
  /** Another key of the same account. */
  withKey(
    caller: Pick<Caller, "accountId">,
    key: MessageInitShape<typeof CreateKeyRequestSchema>,
  ): Promise<Caller>;
  /** A caller with this secret, which may belong to no account. */
  holding(secret: string, who?: Pick<Caller, "accountId" | "keyId">): Caller;
  /** Sets the behaviour of both upstreams, and forgets their earlier requests. Gives the list of the first one's requests. */
  play(behaviour?: Behaviour | Script): SeenRequest[];
  /** Replaces the catalog file. */
  writeCatalog(change: (usual: CatalogObject) => CatalogObject): Promise<void>;
}

/** The operator's clients, over the gRPC port. */
export interface Admin {
  auth: ReturnType<typeof createClient<typeof AuthService>>;
  billing: ReturnType<typeof createClient<typeof BillingService>>;
  text: ReturnType<typeof createClient<typeof TextService>>;
  media: ReturnType<typeof createClient<typeof MediaService>>;
}

/**
 * Starts role `all` in this process on a new data directory. Where GENMESH_TEST_BASE_URL is set, it uses that server. Such a world has only
 * callers ({@link ownWorldOnly}). Every world of the test's own is checked: no answer has the developer prompt, no log line has that or a
 * secret, and the ledger adds up in the end.
 */
export async function startWorld(options: WorldOptions = {}): Promise<World> {
  if (remoteUrl) return remoteWorld(remoteUrl.replace(/\/+$/, ""), remoteKey ?? "");
  await using stack = new AsyncDisposableStack();
  const dataDir = await mkdtemp(join(tmpdir(), "genmesh-e2e-"));
  stack.defer(() => rm(dataDir, { recursive: true, force: true }));
  const upstream = stack.use(await startScriptedUpstream());
  const backup = stack.use(await startScriptedUpstream());
  const usual = testCatalog({
    main: upstream.baseUrl,
    backup: backup.baseUrl,
    nowhere: await closedBaseUrl(),
  });
  const { catalog = (same: CatalogObject) => same } = options;
  const catalogFile = join(dataDir, "catalog.yaml");
  await writeFile(
    catalogFile,
    typeof catalog === "string" ? catalog : JSON.stringify(catalog(usual)),
  );
  const log: string[] = [];
  const secrets = new Set<string>([promptMark, ...Object.values(upstreamKeys)]);
  stack.defer(() => refuseLeaks(log, secrets));
  const catalogAt = options.isCatalogStored ? `store:${catalogFile}` : catalogFile;
  const env = { GENMESH_CATALOG: catalogAt, ...upstreamKeys, ...options.env };
  const running = await (meshReplicas ? startRoles : startHere)({ dataDir, env, log, stack });
  const { baseUrl, admin } = running;
  const holding = (secret: string, who = { accountId: "", keyId: "" }) => {
    if (secret.length > 8) secrets.add(secret);
    return createCaller({ baseUrl, key: secret, ...who }, inspect);
  };
  // This runs first at the world's end, while the ledger can still be read.
  stack.defer(() => auditLedger(admin));
  const owned = stack.move();
  let callers = 0;
  return {
    baseUrl,
    baseUrls: running.baseUrls,
    opsUrl: running.opsUrl,
    opsUrls: running.opsUrls,
    mesh: running.mesh as RoleAllProcess,
    now: running.now,
    setClock: (ms) => running.setClock?.(ms),
    async later(ms) {
      await running.jump(ms);
      const readyUrl = new URL("/readyz", baseUrl);
      await until("readiness after a jump", async () => (await fetch(readyUrl)).ok);
    },
    upstream,
    backup,
    admin,
    log,
    holding,
    async caller({ usdMicros = 10_000_000n, credits = 0n } = {}) {
      const { account, key, secret } = await admin.auth.createAccount({ name: `c${++callers}` });
      const accountId = account?.accountId ?? "";
      const operationId = "opening";
      for (const [unit, amount] of [
        [Unit.USD_MICROS, usdMicros],
        [Unit.CREDITS, credits],
      ] as const) {
        if (amount > 0n) await admin.billing.grant({ accountId, unit, amount, operationId });
      }
      return holding(secret, { accountId, keyId: key?.keyId ?? "" });
    },
    async withKey({ accountId }, wanted) {
      const { key, secret } = await admin.auth.createKey({ ...wanted, accountId });
      return holding(secret, { accountId, keyId: key?.keyId ?? "" });
    },
    play(behaviour = { kind: "ok" }) {
      for (const one of [upstream, backup]) {
        one.requests.length = 0;
        one.script(behaviour);
      }
      return upstream.requests;
    },
    writeCatalog: (change) =>
      writeFile(catalogFile, JSON.stringify(change(structuredClone(usual)))),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Called in a describe, or at a file's top. The tests need a world of their own. */
export function ownWorldOnly(): void {
  beforeEach(({ skip }) => {
    skip(!isOwnWorld, "needs an upstream and an operator of its own");
  });
}

/** Called in the same places. The tests need the process itself, which is {@link World.mesh}. */
export function oneProcessOnly(): void {
  ownWorldOnly();
  beforeEach(({ skip }) => {
    skip(!isOneProcess, "needs a world in one process");
  });
}

/** Is the world one of the test's own? */
export const isOwnWorld = !remoteUrl;
/** Is all of the world in this process? */
export const isOneProcess = isOwnWorld && meshReplicas === undefined;

/** The running part of a world. */
interface Running {
  baseUrl: string;
  baseUrls: string[];
  opsUrl: string;
  opsUrls: string[];
  admin: Admin;
  mesh: RoleAllProcess | undefined;
  now(): number;
  /** Only for a world in one process. */
  setClock?(ms: number): void;
  jump(ms: number): Promise<void>;
}

interface RunningOptions {
  dataDir: string;
  env: Record<string, string>;
  /** Gets the lines of the log. */
  log: string[];
  stack: AsyncDisposableStack;
}

async function startHere({ dataDir, env, log, stack }: RunningOptions): Promise<Running> {
  const config = envToConfig({
    PORT: "0",
    GRPC_PORT: "0",
    GENMESH_OPS_PORT: "0",
    GENMESH_DATA_DIR: dataDir,
    ...env,
  });
  const clock = jumpClock();
  const logger = createLogger("trace", { write: (line) => void log.push(line) }, traceFields);
  const metrics = createMetrics();
  const signal = new AbortController().signal;
  stack.use(await openTelemetry(config, { log: logger, metrics }));
  const mesh = stack.use(await startRoleAll(config, { log: logger, signal, clock, metrics }));
  const { baseUrl, opsUrl } = mesh;
  return {
    baseUrl,
    baseUrls: [baseUrl],
    opsUrl,
    opsUrls: [opsUrl],
    mesh,
    admin: adminOf(mesh),
    now: clock.now,
    setClock: clock.set,
    jump: async (ms) => clock.jump(ms),
  };
}

async function startRoles(options: RunningOptions): Promise<Running> {
  const { stack, env } = options;
  // OpenTelemetry keeps one SDK for a process.
  const isTraced = Object.keys(env).some((name) => name.startsWith("OTEL_"));
  const start = isTraced ? startMeshProcesses : startMeshRoles;
  const mesh = await start({ ...options, replicas: meshReplicas ?? "1" });
  if (!mesh) throw new Error("GENMESH_TEST_MESH needs MongoDB, NATS and S3");
  stack.use(mesh);
  return {
    baseUrl: mesh.baseUrls[0] ?? "",
    baseUrls: mesh.baseUrls,
    opsUrl: mesh.opsUrls["gateway-1"] ?? "",
    opsUrls: Object.values(mesh.opsUrls),
    mesh: undefined,
    admin: mesh.operator,
    now: mesh.now,
    jump: mesh.jump,
  };
}

function remoteWorld(baseUrl: string, key: string): World {
  const caller = createCaller({ baseUrl, key, accountId: "", keyId: "" }, inspect);
  const world = {
    baseUrl,
    now: Date.now,
    admin: {} as Admin,
    caller: async () => caller,
    holding: (secret: string) => createCaller({ ...caller, key: secret }, inspect),
    [Symbol.asyncDispose]: async () => {},
  };
  // The missing parts are used only by skipped tests.
  return world as Partial<World> as World;
}

function adminOf(mesh: RoleAllProcess): Admin {
  const transport = createGrpcTransport({
    baseUrl: `http://${mesh.grpcAddress}`,
    interceptors: [
      (next) => (request) => {
        request.header.set("authorization", `Bearer ${mesh.adminToken}`);
        return next(request);
      },
    ],
  });
  return {
    auth: createClient(AuthService, transport),
    billing: createClient(BillingService, transport),
    text: createClient(TextService, transport),
    media: createClient(MediaService, transport),
  };
}

/** After any history of a world, every balance is the sum of its entries, and their chain is complete. */
async function auditLedger({ billing }: Admin): Promise<void> {
  const findings = [];
  for await (const { finding } of billing.auditLedger({})) findings.push(finding);
  const differences = findings.filter(({ case: kind }) => kind === "difference");
  if (differences.length > 0 || findings.at(-1)?.case !== "summary") {
    throw new Error(`the ledger does not add up: ${inspectValue(findings, { depth: 4 })}`);
  }
}

function inspect(text: string): void {
  if (text.includes(promptMark)) throw new Error(`the developer prompt is in an answer: ${text}`);
}

function refuseLeaks(log: readonly string[], secrets: ReadonlySet<string>): void {
  const told = [...secrets].flatMap((one) => log.filter((line) => line.includes(one)).slice(0, 1));
  if (told.length > 0) throw new Error(`the log holds a secret: ${told.join("")}`);
}
