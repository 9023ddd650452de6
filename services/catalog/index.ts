import { rpcService, type Service } from "#kit/rpc/service.ts";
import { CatalogService } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { createDraftChecker } from "./draft/index.ts";
import { catalogRoutes } from "./routes.ts";
import { type CatalogContext, createSnapshotSource } from "./source.ts";

export type { Fault } from "./faults.ts";
export { catalogJsonSchema, keysIn, valuesOf } from "./key-schema.ts";
export type { CatalogContext } from "./source.ts";
export { type CatalogCheck, checkCatalogFile } from "./source.ts";

/**
 * Makes the catalog service. `start` rejects where the file cannot be served, and lists every fault with its path. After the start, a
 * broken file changes only logs and metrics.
 */
export function createCatalog(context: CatalogContext): Service {
  const source = createSnapshotSource(context);
  const drafts = createDraftChecker(context.workshop);
  const stop = new AbortController();
  const closing = new AbortController();
  let watching: Promise<void> | undefined;
  return {
    name: "catalog",
    rpc: [
      rpcService(
        CatalogService,
        catalogRoutes({ source, clock: context.clock, drafts, closing: closing.signal }),
      ),
    ],
    async start() {
      const watch = await source.load();
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
