// Builds the storage of account files from its parts: uploads, imports, quota, sweeper. Media's index is its caller.

import { whenAborted } from "#kit/base/abort.ts";
import { createFairShare } from "#kit/share/fair-share.ts";
import { eraseBatch } from "../limits.ts";
import type { ReferenceImporter } from "../references/port.ts";
import { createImageCheck } from "./check.ts";
import { clearFile } from "./clear.ts";
import { type FilesDeps, openFileStores, type StorageContext } from "./context.ts";
import { createFilesEvents } from "./events.ts";
import { storageIdOf } from "./file.ts";
import { createReferenceImporter } from "./importer.ts";
import { defaultQuotaBytes } from "./limits.ts";
import { createFilesRoutes, type FilesMethods } from "./routes.ts";
import { createSaver } from "./saver.ts";
import { createSpooler } from "./spool.ts";
import { createFileSweeper } from "./sweeper.ts";
import { createUploads } from "./upload.ts";

export type { FilesDeps, GeneratedFileName, GeneratedFiles, LocatedFile } from "./context.ts";
export { quotaMongoSchema } from "./quota-mongo-wallet.ts";
export type { FilesMethods } from "./routes.ts";
export { filesMongoSchema } from "./store-mongo-docs.ts";

/** The accounts' file storage. */
export interface Files extends AsyncDisposable {
  readonly methods: FilesMethods;
  /** Imports a job's references. */
  readonly importer: ReferenceImporter;
  /** May the bytes of this blob key still be needed? False for keys of other things than uploads and imports. */
  isReferenced(blobKey: string): Promise<boolean>;
  start(): Promise<void>;
  /** Stops sweeping and lets uploads and imports end, until `signal` aborts. */
  drain(signal: AbortSignal): Promise<void>;
  /** Erases some of an account's uploads and imports. True: none was left. */
  eraseAccount(accountId: string): Promise<boolean>;
  /** Clears away everything that is due now, once. */
  sweep(): Promise<void>;
}

/** Makes the file storage. */
export function createFiles(deps: FilesDeps): Files {
  const { clock, ids, blobs } = deps;
  const { prepare, ...stores } = openFileStores(deps.database);
  const context: StorageContext = {
    ...stores,
    clock,
    ids,
    blobs,
    quotaBytes: deps.quotaBytes ?? defaultQuotaBytes,
    events: createFilesEvents(deps),
    share: (bounds) => createFairShare(bounds, { isPaying: deps.payers?.isPaying, clock }),
  };
  const check = createImageCheck(deps.verifier);
  const saver = createSaver(context);
  const spooler = createSpooler({ folder: deps.tempFolder, clock, ids });
  const uploads = createUploads({ ...context, saver, spooler, check });
  const { fetcher, generated } = deps;
  const importer = createReferenceImporter({ ...context, saver, check, fetcher, generated });
  const sweeper = createFileSweeper({ ...context, generated: deps.generated });
  const life = new AbortController();
  let sweeping: Promise<void> | undefined;

  const idle = () => Promise.all([uploads.idle(), saver.idle()]);
  return {
    methods: createFilesRoutes({ ...context, uploads, generated: deps.generated }),
    importer,
    async isReferenced(blobKey) {
      const storageId = storageIdOf(blobKey);
      return storageId !== undefined && context.store.isReferenced(storageId);
    },
    async start() {
      await prepare();
      await spooler.start();
      sweeping = sweeper.run(life.signal);
    },
    async drain(signal) {
      life.abort();
      await sweeping;
      await Promise.race([idle(), whenAborted(signal)]);
    },
    async eraseAccount(accountId) {
      const page = { after: undefined, limit: eraseBatch, purpose: undefined, ascending: true };
      const found = (await context.store.list(accountId, page)) ?? [];
      for (const { fileId } of found) {
        const file = await context.store.remove(accountId, fileId, clock.now());
        if (file) await clearFile(file, context);
      }
      return found.length === 0;
    },
    sweep: () => sweeper.sweep(),
    async [Symbol.asyncDispose]() {
      life.abort();
      await sweeping;
    },
  };
}
