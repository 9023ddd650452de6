// Reads the environment's variables for database, queue and files, and refuses those that a role cannot use. `stores.ts` opens
// them.

import { isAbsolute, join, resolve } from "node:path";
import { parseNatsUrl } from "#kit/queue/jetstream-url.ts";
import { wakeNamePattern } from "#kit/queue/port.ts";
import { parseS3Url } from "#kit/store/blobs/s3-url.ts";
import { badVariable, type EnvReader } from "./env.ts";
import { needsOf, type Role } from "./roles.ts";

/** The database with the data that must survive the process. A URL may hold a password, so it is never printed. */
export type DatabaseConfig = { kind: "sqlite"; file: string } | { kind: "mongodb"; url: string };

/** The store of blobs. */
export type BlobsConfig = { kind: "file"; folder: string } | { kind: "s3"; url: string };

/** The queue that wakes workers. */
export type QueueConfig =
  | { kind: "memory" }
  | {
      kind: "nats";
      url: string;
      /** Holds a JWT and its seed. */
      credsFile: string | undefined;
      /** Servers that keep a copy of the stream. */
      replicas: number;
      /** Part of the names of the stream and its subjects, where several meshes share a server. */
      name: string;
    };

/** The stores that a role needs. Undefined where it needs none. */
export interface StoresConfig {
  database: DatabaseConfig | undefined;
  queue: QueueConfig | undefined;
  blobs: BlobsConfig | undefined;
}

/** A variable that names a store by a URL. */
interface StoreVariable {
  name: string;
  /** Schemes for the store of a single process, which only role `all` can use. */
  embedded: string;
  /** Schemes for a store that processes share. */
  shared: string;
}

const database: StoreVariable = {
  name: "GENMESH_DATABASE_URL",
  embedded: "sqlite:FILE",
  shared: "mongodb://HOST/DATABASE (or mongodb+srv:)",
};
const queue: StoreVariable = {
  name: "GENMESH_QUEUE_URL",
  embedded: "memory:",
  shared: "nats://HOST:PORT (or tls:)",
};
const blobs: StoreVariable = {
  name: "GENMESH_BLOBS_URL",
  embedded: "file:FOLDER",
  shared: "s3+http://ACCESS:SECRET@HOST:PORT/BUCKET (or s3+https:)",
};

const mongoUrl = /^mongodb(?:\+srv)?:\/\/[^/?]+\/[^/?]+/;
/** The most copies of a stream that NATS allows. */
const maxReplicas = 5;

/**
 * Reads the stores that `role` needs. Embedded ones are only for role `all`, which has them by default. Versions of the catalog need a
 * database where the catalog is.
 */
export function storesConfig(
  read: EnvReader,
  role: Role,
  dataDir: string,
  hasVersions: boolean,
): StoresConfig {
  const needs = needsOf[role];
  const needsDatabase = needs.database || (role === "catalog" && hasVersions);
  return {
    database: needsDatabase ? databaseConfig(read, role, dataDir) : undefined,
    queue: needs.queue ? queueConfig(read, role) : undefined,
    blobs: needs.blobs ? blobsConfig(read, role, dataDir) : undefined,
  };
}

function databaseConfig(read: EnvReader, role: Role, dataDir: string): DatabaseConfig {
  const url = read.text(database.name);
  if (url === undefined && role === "all") {
    return { kind: "sqlite", file: join(dataDir, "genmesh.sqlite") };
  }
  if (url !== undefined && mongoUrl.test(url)) return { kind: "mongodb", url };
  return { kind: "sqlite", file: pathIn(url, "sqlite:", database, role) };
}

function blobsConfig(read: EnvReader, role: Role, dataDir: string): BlobsConfig {
  const url = read.text(blobs.name);
  if (url === undefined && role === "all") return { kind: "file", folder: join(dataDir, "blobs") };
  if (url?.startsWith("s3+http")) {
    explained(blobs.name, () => parseS3Url(url));
    return { kind: "s3", url };
  }
  return { kind: "file", folder: pathIn(url, "file:", blobs, role) };
}

function queueConfig(read: EnvReader, role: Role): QueueConfig {
  const url = read.text(queue.name);
  if (url !== undefined && /^(?:nats|tls):/.test(url)) {
    explained(queue.name, () => parseNatsUrl(url));
    return {
      kind: "nats",
      url,
      credsFile: read.text("GENMESH_NATS_CREDS_FILE"),
      replicas: read.integer("GENMESH_NATS_REPLICAS", 1, 1, maxReplicas),
      name: queueName(read),
    };
  }
  const isEmbedded = url === undefined ? role === "all" : url === "memory:";
  if (!isEmbedded || role !== "all") refused(url, "memory:", queue, role);
  return { kind: "memory" };
}

function queueName(read: EnvReader): string {
  const name = read.text("GENMESH_NATS_NAME") ?? "genmesh";
  if (wakeNamePattern.test(name)) return name;
  return badVariable("GENMESH_NATS_NAME", "must be 1 to 64 of A-Z, a-z, 0-9, _ and -", name);
}

/** The path in `SCHEME:PATH`. Refuses a value that is no such URL, and every such URL outside role `all`. */
function pathIn(
  url: string | undefined,
  scheme: string,
  variable: StoreVariable,
  role: Role,
): string {
  const path = url?.startsWith(scheme) ? url.slice(scheme.length).replace(/^\/\/(?=\/)/, "") : "";
  if (path === "" || path.startsWith("//") || role !== "all") refused(url, scheme, variable, role);
  return isAbsolute(path) ? path : resolve(path);
}

// The value may hold a password, so a fault does not repeat it.
function refused(
  url: string | undefined,
  scheme: string,
  { name, embedded, shared }: StoreVariable,
  role: Role,
): never {
  if (role === "all") badVariable(name, `must be ${embedded} or ${shared}`);
  if (url === undefined) badVariable(name, `must be set for role ${role}: ${shared}`);
  const why = url.startsWith(scheme) ? `, for ${scheme} serves role all only` : "";
  badVariable(name, `must be ${shared} in role ${role}${why}`);
}

/** The adapter's own text states the accepted form, and repeats nothing of the URL. */
function explained(name: string, parse: () => unknown): void {
  try {
    parse();
  } catch (error) {
    badVariable(name, (error as Error).message);
  }
}
