// Logs and counts what happens to uploads and imports.

import type { Logger } from "#kit/base/logger.ts";
import type { Metrics } from "#kit/base/metrics.ts";
import type { AccountFile, FileOrigin } from "./file.ts";

/** Counts and logs of the account files. Never a name, a purpose, an address or a key. */
export interface FilesEvents {
  /** An image is stored and counted. */
  stored(file: AccountFile): void;
  /** The file existed already: a repeated upload, or an import of bytes that the account has. */
  reused(origin: FileOrigin): void;
  /** A caller deleted a file. */
  deleted(file: AccountFile): void;
  /** A file's bytes are gone. */
  erased(file: AccountFile): void;
  /** An attempt at storing was given up. `orphan`: by another process than its owner. */
  dropped(file: AccountFile, orphan: boolean): void;
  /** A step of this service failed and will be tried again. */
  trouble(what: string, fileId: string | undefined, error: unknown): void;
}

/** Makes the events. */
export function createFilesEvents(deps: { log: Logger; metrics: Metrics }): FilesEvents {
  const { log, metrics } = deps;
  const stored = metrics.counter(
    "genmesh_media_files_stored_total",
    "Files stored, by where they came from.",
    ["origin"],
  );
  const bytes = metrics.counter(
    "genmesh_media_files_stored_bytes_total",
    "Bytes of the files stored.",
    ["origin"],
  );
  const reused = metrics.counter(
    "genmesh_media_files_reused_total",
    "Uploads and imports of what the account has already.",
    ["origin"],
  );
  const removed = metrics.counter(
    "genmesh_media_files_removed_total",
    "Files deleted by their caller, bytes erased, and attempts at storing that were given up.",
    ["step"],
  );
  return {
    stored({ origin, sizeBytes }) {
      stored.of(origin).value++;
      bytes.of(origin).value += sizeBytes;
    },
    reused(origin) {
      reused.of(origin).value++;
    },
    deleted() {
      removed.of("deleted").value++;
    },
    erased() {
      removed.of("erased").value++;
    },
    dropped({ fileId, accountId }, orphan) {
      removed.of("dropped").value++;
      if (orphan) log.warn({ fileId, accountId }, "gave up storing a file of a dead process");
    },
    trouble: (what, fileId, error) => log.warn({ fileId, err: error }, what),
  };
}
