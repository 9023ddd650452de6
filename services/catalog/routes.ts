// Answers the methods by which other services read the catalog and watch it, and the method that checks a draft. `versions.ts`
// has those that change what is in force.

import { dirname } from "node:path";
import { create } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import type { Clock } from "#kit/time/clock.ts";
import {
  type CatalogService,
  GetSnapshotResponseSchema,
  WatchSnapshotsResponseSchema,
} from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { DraftChecker } from "./draft/index.ts";
import { heartbeatMs } from "./limits.ts";
import type { SnapshotSource } from "./source.ts";

/** The parts that the methods need. */
interface CatalogRoutesDeps {
  /** Path of the catalog file. Workflow files lie beside it. */
  file: string;
  /** Are versions in the store the master? */
  isStored: boolean;
  source: SnapshotSource;
  clock: Clock;
  drafts: Pick<DraftChecker, "check">;
  /** Resolves when the newest version in the store is in force here. */
  caughtUp(): Promise<unknown>;
  /** Aborts when open watches must end, so that their callers turn to another replica. */
  closing: AbortSignal;
}

/** The methods that read the catalog in force, and judge drafts of it. */
export function catalogRoutes({
  file,
  isStored,
  source,
  clock,
  drafts,
  caughtUp,
  closing,
}: CatalogRoutesDeps): Pick<
  ServiceImpl<typeof CatalogService>,
  "getSnapshot" | "checkDraft" | "watchSnapshots"
> {
  return {
    getSnapshot(req) {
      const snapshot = source.current();
      const known = snapshot.version === req.knownVersion;
      return create(GetSnapshotResponseSchema, known ? {} : { snapshot });
    },
    async checkDraft({ yaml }, { signal }) {
      await caughtUp();
      const inForce = source.inForce();
      const draft = { text: yaml, workflows: inForce.workflows };
      const folder = dirname(file);
      const job = { draft, folder, onlyKnownKeyFiles: isStored, inForce, nowMs: clock.now() };
      const { workflows: _, ...verdict } = await drafts.check(job, signal);
      return verdict;
    },
    async *watchSnapshots(req, context) {
      const ending = AbortSignal.any([context.signal, closing]);
      let known = req.knownVersion;
      while (!ending.aborted) {
        const snapshot = source.current();
        const news = snapshot.version !== known;
        known = snapshot.version;
        const isRefused = source.isRefused();
        yield create(WatchSnapshotsResponseSchema, news ? { snapshot, isRefused } : { isRefused });
        // A change during the sending of the message is sent at once.
        if (source.current() === snapshot) await changeOrHeartbeat(source, clock, ending);
      }
    },
  };
}

/** Resolves at the next change, after 5 s, or when `ending` aborts. */
async function changeOrHeartbeat(
  source: SnapshotSource,
  clock: Clock,
  ending: AbortSignal,
): Promise<void> {
  const changed = new AbortController();
  const off = source.onChange(() => changed.abort());
  await clock.sleep(heartbeatMs, AbortSignal.any([ending, changed.signal])).catch(() => {});
  off();
}
