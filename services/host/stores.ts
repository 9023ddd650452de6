// Opens the database, queue and files that the configuration names. `config-stores.ts` has read which ones.

import { dirname } from "node:path";
import { makePrivateFolder } from "#kit/base/private-files.ts";
import type { WakeQueue } from "#kit/queue/port.ts";
import { timedBlobs } from "#kit/store/blobs/timed.ts";
import { tracedBlobs } from "#kit/store/blobs/traced.ts";
import type { BlobStore } from "#kit/store/blobs.ts";
import type { Database } from "#kit/store/database.ts";
import type { MongoDatabase } from "#kit/store/mongo/connect.ts";
import { tracedQueue } from "#kit/telemetry/queue.ts";
import type { BlobsConfig, DatabaseConfig, QueueConfig } from "./config-stores.ts";
import type { HostContext } from "./context.ts";
import { diskChecks } from "./disk-room.ts";
import { ConfigError } from "./env.ts";
import type { Role } from "./roles.ts";
import type { Scratch } from "./scratch.ts";
import type { StoreCheck } from "./store-watch.ts";

/** The stores of a process. Undefined: its role needs none. */
export interface Stores {
  database: Database | undefined;
  blobs: BlobStore | undefined;
  queue: WakeQueue | undefined;
  /**
   * Checks of the servers and disks on which readiness depends. The queue is not among them: jobs are accepted, and end, without it.
   */
  checks: readonly StoreCheck[];
}

/** A store of a role that needs it. Reading the configuration decides which stores a role has. */
export function storeOf<K extends Exclude<keyof Stores, "checks">>(
  stores: Stores,
  kind: K,
): NonNullable<Stores[K]> {
  const store = stores[kind];
  if (!store) throw new Error(`this role has no ${kind}`);
  return store;
}

/**
 * Opens the stores that the configuration names, and loads only their drivers. `stack` closes them. Throws ConfigError where an
 * embedded one cannot be opened. A server that is away causes no error: it is tried again when it is used.
 */
export async function openStores(
  context: HostContext,
  { stack, scratch }: { stack: AsyncDisposableStack; scratch: Scratch },
): Promise<Stores> {
  const { database, blobs, queue, role, dataDir } = context.config;
  const checks: StoreCheck[] = [];
  const folders = role === "all" ? [dataDir] : [];
  const opening = { stack, checks, folders };
  const opened = {
    database: database && (await openDatabase(database, context, opening)),
    blobs: blobs && (await openBlobs(blobs, context, { ...opening, scratch })),
    queue: queue && (await openQueue(queue, context, stack)),
  };
  return { ...opened, checks: [...checks, ...diskChecks(folders)] };
}

/** The parts to which opening a store adds. */
interface Opening {
  stack: AsyncDisposableStack;
  checks: StoreCheck[];
  /** Folders of this machine that are written to. */
  folders: string[];
}

/** Roles behind the public address. Where they are not ready, no request is served. */
const servesText: ReadonlySet<Role> = new Set<Role>(["all", "gateway"]);

async function openDatabase(
  config: DatabaseConfig,
  context: HostContext,
  { stack, checks, folders }: Opening,
): Promise<Database> {
  if (config.kind === "mongodb") {
    const { openMongo } = await import("#kit/store/mongo/connect.ts");
    const { url } = config;
    const isTraced = context.config.telemetry?.traces !== undefined;
    const mongo = stack.use(mongoAt(() => openMongo({ url, clock: context.clock, isTraced })));
    checks.push({ store: "database", isNeeded: true, ask: () => mongo.ping() });
    return { kind: "mongodb", mongo };
  }
  const { openSqlite } = await import("#kit/store/sqlite.ts");
  const { file } = config;
  const sqlite = await writable("GENMESH_DATABASE_URL", "a database file", file, () => {
    makePrivateFolder(dirname(file));
    return openSqlite(file);
  });
  folders.push(dirname(file));
  return { kind: "sqlite", sqlite: stack.use(sqlite) };
}

async function openBlobs(
  config: BlobsConfig,
  context: HostContext,
  { stack, scratch, checks, folders }: Opening & { scratch: Scratch },
): Promise<BlobStore> {
  if (config.kind === "s3") {
    const { openS3Blobs } = await import("#kit/store/blobs/s3.ts");
    const { url } = config;
    // The gateway only reads.
    const scratchFolder = context.config.role === "gateway" ? undefined : scratch("blobs");
    if (scratchFolder !== undefined) folders.push(scratchFolder);
    const access = scratchFolder === undefined ? { readOnly: true } : { scratchFolder };
    const store = await sensible("GENMESH_BLOBS_URL", () =>
      openS3Blobs({ url, ...access, ...context }),
    );
    // An edge without files still serves text.
    const isNeeded = !servesText.has(context.config.role);
    checks.push({ store: "blobs", isNeeded, ask: () => store.check() });
    return seenBlobs(stack.use(store), context, "s3");
  }
  const { openFolderBlobs } = await import("#kit/store/blobs/folder.ts");
  const { folder } = config;
  const store = await writable("GENMESH_BLOBS_URL", "a folder", folder, () =>
    openFolderBlobs({ ...context, folder }),
  );
  folders.push(folder);
  return seenBlobs(store, context, "file");
}

function seenBlobs(store: BlobStore, context: HostContext, kind: "file" | "s3"): BlobStore {
  return tracedBlobs(timedBlobs(store, context.metrics, kind), kind);
}

async function openQueue(
  config: QueueConfig,
  context: HostContext,
  stack: AsyncDisposableStack,
): Promise<WakeQueue> {
  if (config.kind === "memory") {
    const { createMemoryQueue } = await import("#kit/queue/memory.ts");
    return tracedQueue(stack.use(createMemoryQueue(context)), "memory");
  }
  const { openJetstreamQueue } = await import("#kit/queue/jetstream.ts");
  const queue = await sensible("GENMESH_QUEUE_URL", () =>
    openJetstreamQueue({ ...context, ...config }),
  );
  return tracedQueue(stack.use(queue), "nats");
}

/** Faults of opening an embedded store name the variable that chose it. */
async function writable<T>(
  variable: string,
  what: string,
  path: string,
  open: () => T | Promise<T>,
): Promise<T> {
  try {
    return await open();
  } catch (error) {
    throw new ConfigError(
      `${variable} must name ${what} that can be written; ${path} cannot: ${(error as Error).message}`,
    );
  }
}

/** The driver's own text would repeat the URL with its password. */
function mongoAt(open: () => MongoDatabase): MongoDatabase {
  try {
    return open();
  } catch {
    throw new ConfigError("GENMESH_DATABASE_URL must be a URL that the MongoDB driver takes");
  }
}

/** A URL that its adapter refuses is a fault of the configuration. Adapters do not repeat secrets. */
async function sensible<T>(variable: string, open: () => T | Promise<T>): Promise<T> {
  try {
    return await open();
  } catch (error) {
    throw new ConfigError(`${variable} cannot be used: ${(error as Error).message}`);
  }
}
