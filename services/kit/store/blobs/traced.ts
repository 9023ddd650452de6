// Adds spans to a blob store. So no store needs code for them.

import type { BlobStore } from "#kit/store/blobs.ts";
import { traced } from "#kit/telemetry/spans.ts";

/** `store`, with a span for each operation within a trace. */
export function tracedBlobs(store: BlobStore, kind: "file" | "s3"): BlobStore {
  const seen = <T>(verb: "put" | "open" | "stat" | "delete", work: () => Promise<T>) =>
    traced(
      { family: "blob", name: `${verb} blob`, attributes: { "genmesh.blob.store": kind } },
      work,
    );
  return {
    put: (key, source, signal) => seen("put", () => store.put(key, source, signal)),
    openRead: (key, range) => seen("open", () => store.openRead(key, range)),
    stat: (key) => seen("stat", () => store.stat(key)),
    delete: (key) => seen("delete", () => store.delete(key)),
    list: (prefix) => store.list(prefix),
  };
}
