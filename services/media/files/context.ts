// Says what the account files need from media, and opens their stores in the process's database.

import type { Ids } from "#kit/base/ids.ts";
import type { Logger } from "#kit/base/logger.ts";
import type { Metrics } from "#kit/base/metrics.ts";
import type { ImageVerifier } from "#kit/images/index.ts";
import type { GuardedFetcher } from "#kit/outside/index.ts";
import type { Principal } from "#kit/rpc/principal.ts";
import type { FairShare, FairShareBounds } from "#kit/share/fair-share.ts";
import type { Payers } from "#kit/share/payers.ts";
import type { BlobStore } from "#kit/store/blobs.ts";
import type { Database } from "#kit/store/database.ts";
import { migrate } from "#kit/store/mongo/migrate.ts";
import type { Clock } from "#kit/time/clock.ts";
import type { FileArea } from "#proto/genmesh/media/v1/media_service_pb.ts";
import type { PinnedReference } from "../references/port.ts";
import type { FilesEvents } from "./events.ts";
import type { QuotaStore } from "./quota.ts";
import { createMongoQuota } from "./quota-mongo.ts";
import { quotaMongoSchema } from "./quota-mongo-wallet.ts";
import { createSqliteQuota } from "./quota-sqlite.ts";
import type { FileStore } from "./store.ts";
import { createMongoFileStore } from "./store-mongo.ts";
import { filesMongoSchema } from "./store-mongo-docs.ts";
import { createSqliteFileStore } from "./store-sqlite.ts";

/** A file of media that a caller may read. */
export interface LocatedFile {
  blobKey: string;
  mimeType: string;
  sizeBytes: number;
  /** Lower-case hexadecimal. */
  sha256: string;
  /** Milliseconds since the epoch. */
  createdAt: number;
}

/** A generated file, by its names in a path. */
export interface GeneratedFileName {
  area:
    | typeof FileArea.IMAGES
    | typeof FileArea.VIDEOS
    | typeof FileArea.MUSIC
    | typeof FileArea.SPEECH;
  /** The id of the job or speech. */
  parentId: string;
  fileId: string;
}

/** The generated files of media's jobs and speech. */
export interface GeneratedFiles {
  /** A file that this key id made and that is still kept. Undefined for everything else. */
  locate(name: GeneratedFileName, principal: Principal): Promise<LocatedFile | undefined>;
  /**
   * An output of this key id (of that job, where one is named). It is kept for as long as a job that begins now may need it. Undefined
   * for everything else.
   */
  lend(output: {
    fileId: string;
    jobId: string | undefined;
    keyId: string;
  }): Promise<PinnedReference | undefined>;
  /**
   * Does the job still need its references? False for a terminal job, or one without a record: a job is written down before it pins.
   */
  needsReferences(jobId: string): Promise<boolean>;
}

/** The parts that the account files need. */
export interface FilesDeps {
  clock: Clock;
  ids: Ids;
  log: Logger;
  metrics: Metrics;
  database: Database;
  blobs: BlobStore;
  verifier: Pick<ImageVerifier, "verify">;
  /** Fetches addresses that callers name. */
  fetcher: GuardedFetcher;
  /** A folder of this process for uploads under way. Made where it does not exist. */
  tempFolder: string;
  generated: GeneratedFiles;
  /** An account that it does not know has smaller shares. */
  payers?: Pick<Payers, "isPaying">;
  /** Bytes an account may store. Default: 1 GiB. */
  quotaBytes?: number;
}

/** The parts that storing and clearing files needs. */
export interface StorageContext {
  clock: Clock;
  ids: Ids;
  store: FileStore;
  quota: QuotaStore;
  quotaBytes: number;
  blobs: BlobStore;
  events: FilesEvents;
  /** Makes a share of a resource of this process. */
  share(bounds: FairShareBounds): FairShare;
}

/** The stores of the files. */
export interface FileStores {
  store: FileStore;
  quota: QuotaStore;
  /** Makes collections and indexes. To be called once, first of all. */
  prepare(): Promise<void>;
}

/** The stores in the process's database. */
export function openFileStores(database: Database): FileStores {
  switch (database.kind) {
    case "sqlite":
      return {
        store: createSqliteFileStore(database.sqlite),
        quota: createSqliteQuota(database.sqlite),
        // Its tables exist since it was opened.
        prepare: async () => {},
      };
    case "mongodb":
      return {
        store: createMongoFileStore(database.mongo),
        quota: createMongoQuota(database.mongo),
        prepare: () => migrate(database.mongo, [filesMongoSchema, quotaMongoSchema]),
      };
  }
}
