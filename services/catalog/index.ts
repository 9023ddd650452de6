// Builds the catalog service: chooses the file or the versions in the store as master, loads it at the start and follows its
// changes. The host is its caller.

import { rpcService, type Service } from "#kit/rpc/service.ts";
import { CatalogService } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { createDraftChecker } from "./draft/index.ts";
import { type CatalogWatch, catalogReader } from "./file.ts";
import { catalogRoutes } from "./routes.ts";
import { type CatalogContext, createSnapshotSource } from "./source.ts";
import { storedReader } from "./stored.ts";
import { createStoredKeyStore } from "./stored-key-store-documents.ts";
import { createStoredKeys, storedKeyRoutes } from "./stored-keys.ts";
import { fileNumber } from "./version.ts";
import { createVersionStore } from "./version-store-documents.ts";
import { versionRoutes } from "./versions.ts";

export type { Fault } from "./faults.ts";
export { catalogJsonSchema, keysIn, valuesOf } from "./key-schema.ts";
export type { CatalogContext } from "./source.ts";
export { type CatalogCheck, checkCatalogFile } from "./source.ts";
export { storedKeyComponent } from "./stored-key-store-documents.ts";
export { catalogComponent } from "./version-store-documents.ts";

/**
 * Makes the catalog service. `start` rejects where the catalog cannot be served, and lists every fault with its path. After the start, a
 * broken file changes only logs and metrics.
 */
export function createCatalog(context: CatalogContext): Service {
  const { file, database, clock, seal } = context;
  const versions = database && createVersionStore(database);
  const store = database && createStoredKeyStore(database);
  const keys = store && createStoredKeys(store, seal);
  const kept = keys && { keys, store };
  const fromFile = catalogReader(file);
  const readText = versions ? storedReader(versions, fromFile) : fromFile;
  const read = async () => {
    const text = await readText();
    // After the text, so that the keys that it names are here with it.
    await keys?.look();
    return text;
  };
  const source = createSnapshotSource({ ...context, read, isStored: versions !== undefined });
  const drafts = createDraftChecker(context.workshop);
  const stop = new AbortController();
  const closing = new AbortController();
  let watch: CatalogWatch | undefined;
  let watching: Promise<void> | undefined;
  const look = async () => watch?.look();
  // An operator gets the text and the number of the same version. A draft may name a key that another replica has just stored.
  const caughtUp = async () => {
    if (keys) await look();
    const newest = await versions?.newest();
    const { number = fileNumber } = source.inForce();
    if ((newest?.number ?? fileNumber) !== number) await look();
    return newest;
  };
  return {
    name: "catalog",
    rpc: [
      rpcService(CatalogService, {
        ...catalogRoutes({
          ...{ file, source, keys, clock, drafts, caughtUp, closing: closing.signal },
          isStored: versions !== undefined,
        }),
        ...versionRoutes({ file, source, versions, keys, drafts, clock, look, caughtUp }),
        ...storedKeyRoutes({ source, kept, seal, clock, look }),
      }),
    ],
    async start() {
      await versions?.open();
      await keys?.open();
      watch = await source.load();
      watching = watch.run(stop.signal);
    },
    notReady: () => (source.loaded() ? undefined : "the catalog file was not read yet"),
    async drain() {
      stop.abort();
      closing.abort();
      await watching;
    },
    async [Symbol.asyncDispose]() {
      stop.abort();
      closing.abort();
      await watching;
    },
  };
}
