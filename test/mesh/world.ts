import { randomBytes } from "node:crypto";
import { appendFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Peers } from "#common/agreements/peers.ts";
import type { CreateKeyRequestSchema } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import { Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { operatorPeers } from "../../services/host/cli/client.ts";
import { envToOperatorConfig } from "../../services/host/config.ts";
import { peerVariables } from "../../services/host/config-wire.ts";
import { type MeshRole, peerNames } from "../../services/host/roles.ts";
import { readMeshArguments } from "../../services/host/run-mesh/options.ts";
import { type PlannedProcess, planMesh } from "../../services/host/run-mesh/plan.ts";
import { samplePng } from "../../services/upstreams/media/samples.fixture.ts";
import { freeMeshPorts } from "../support/free-port.ts";
import {
  type ScriptedMediaUpstream,
  startScriptedMediaUpstream,
} from "../support/scripted-media-upstream.ts";
import { type ScriptedUpstream, startScriptedUpstream } from "../support/scripted-upstream.ts";
import { meshCatalog } from "./catalog.ts";
import { type MeshProcess, meshProcess } from "./processes.ts";
import { type MeshStores, openMeshStores } from "./stores.ts";

/** A caller with a key. */
export interface MeshCaller {
  accountId: string;
  keyId: string;
  key: string;
}

/** Every role in processes of its own, with upstreams that count. The stores are the mesh's own, behind connections that a test can cut. */
export interface MeshWorld extends AsyncDisposable {
  /** Origins of the gateways. */
  gateways: string[];
  processes: MeshProcess[];
  of(role: MeshRole): MeshProcess[];
  stores: MeshStores;
  /** Has the admin token. It calls the first replica of each service. */
  operator: Peers;
  text: ScriptedUpstream;
  media: ScriptedMediaUpstream;
  /** The log lines of all processes. */
  log: { name: string; line: string }[];
  /** A caller of a new account. */
  caller(funds: { usdMicros?: bigint; credits?: bigint }): Promise<MeshCaller>;
  /** Another key of an account. */
  keyOf(
    accountId: string,
    key?: MessageInitShape<typeof CreateKeyRequestSchema>,
  ): Promise<MeshCaller>;
  /** Replaces the catalog file by the usual models and further names. */
  writeCatalog(moreModels: readonly string[]): Promise<void>;
}

/** Settings of a mesh. */
export interface MeshWorldOptions {
  /** In the form of `npm run mesh`, for example `2` or `2,media-worker=3`. */
  replicas: string;
  env?: Record<string, string>;
  /** The checkout whose code its processes run first. Default: this one. */
  checkout?: string | undefined;
  /** Milliseconds by which the clocks of some processes are ahead, by name. */
  clocksAheadMs?: Record<string, number>;
}

/** Names a file that gets the log lines of all processes. */
const { GENMESH_TEST_MESH_LOG: logFile } = process.env;
const adminToken = "admin-token-of-the-mesh-tests";

/** Starts a mesh. Undefined where a store has no server. */
export async function startMeshWorld(options: MeshWorldOptions): Promise<MeshWorld | undefined> {
  await using stack = new AsyncDisposableStack();
  const stores = await openMeshStores();
  if (!stores) return undefined;
  stack.use(stores);
  const folder = await mkdtemp(join(tmpdir(), "genmesh-mesh-"));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const text = stack.use(await startScriptedUpstream());
  const png = await samplePng(64, 64);
  const empty = Buffer.alloc(0);
  const media = stack.use(
    await startScriptedMediaUpstream("genmesh", { images: [png], video: empty, sound: empty }),
  );
  const catalogFile = join(folder, "catalog.yaml");
  const addresses = { text: text.baseUrl, media: media.baseUrl };
  const writeCatalog = (more: readonly string[]) =>
    writeFile(catalogFile, meshCatalog(addresses, more));
  await writeCatalog([]);
  const plan = await planOf(options, {
    PATH: process.env.PATH,
    TMPDIR: folder,
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
    GENMESH_CATALOG: catalogFile,
    // More than a load submits during one job. So jobs wait only for the part that is away.
    GENMESH_IMAGE_WORKERS: "30",
    GENMESH_MESH_TOKEN: `mesh-token-${randomBytes(8).toString("hex")}`,
    GENMESH_ADMIN_TOKEN: adminToken,
    ...stores.env,
    ...options.env,
  });
  const log: MeshWorld["log"] = [];
  const processes = plan.map((planned) =>
    meshProcess(planned, {
      log(name, line) {
        log.push({ name, line });
        if (logFile) appendFileSync(logFile, `${name} | ${line}\n`);
      },
      clockAheadMs: options.clocksAheadMs?.[planned.name],
    }),
  );
  stack.defer(async () => void (await Promise.all(processes.map((one) => one.kill()))));
  await Promise.all(processes.map((one) => one.start(options.checkout)));
  const operator = operatorOf(plan);
  const of = (role: MeshRole) => processes.filter((one) => one.role === role);
  const owned = stack.move();
  return {
    gateways: of("gateway").map(({ url }) => url),
    processes,
    of,
    stores,
    operator,
    text,
    media,
    log,
    writeCatalog,
    ...callersOf(operator),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function planOf({ replicas }: MeshWorldOptions, env: Record<string, string | undefined>) {
  const first = await freeMeshPorts();
  return planMesh({
    ...readMeshArguments(["--replicas", replicas]),
    env,
    host: "127.0.0.1",
    tls: false,
    firstPorts: { public: first, internal: first },
  });
}

function operatorOf([planned]: PlannedProcess[]): Peers {
  const urls = peerNames.map((name) => [
    peerVariables[name],
    planned?.env[peerVariables[name]] ?? "",
  ]);
  return operatorPeers(
    envToOperatorConfig({ ...Object.fromEntries(urls), GENMESH_ADMIN_TOKEN: adminToken }),
    undefined,
  );
}

function callersOf({ auth, billing }: Peers): Pick<MeshWorld, "caller" | "keyOf"> {
  return {
    async caller({ usdMicros = 0n, credits = 0n }) {
      const { account, key, secret } = await auth.createAccount({ name: "caller" });
      const accountId = account?.accountId ?? "";
      for (const [unit, amount] of [
        [Unit.USD_MICROS, usdMicros],
        [Unit.CREDITS, credits],
      ] as const) {
        const grant = { accountId, unit, amount, operationId: "opening" };
        if (amount > 0n) await billing.grant(grant);
      }
      return { accountId, keyId: key?.keyId ?? "", key: secret };
    },
    async keyOf(accountId, wanted = {}) {
      const { key, secret } = await auth.createKey({ ...wanted, accountId });
      return { accountId, keyId: key?.keyId ?? "", key: secret };
    },
  };
}
