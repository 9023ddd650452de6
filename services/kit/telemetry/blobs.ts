import type { BlobStore } from "../blobs.ts";
import type { Telemetry } from "./port.ts";
import { traced } from "./traced.ts";

/** `store`, whose verbs are spans of the traces that they are part of. As it is where nobody listens. */
export function tracedBlobs(
  store: BlobStore,
  telemetry: Telemetry,
  kind: "file" | "s3",
): BlobStore {
  if (!telemetry.isOn) return store;
  const seen = <T>(verb: "put" | "open" | "stat" | "delete", work: () => Promise<T>) =>
    traced(
      telemetry,
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
