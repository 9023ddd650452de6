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
import type { StoredKey } from "./stored-key.ts";
import type { StoredKeys } from "./stored-keys.ts";

/** The parts that the methods need. */
interface CatalogRoutesDeps {
  /** Path of the catalog file. Workflow files lie beside it. */
  file: string;
  /** Are versions in the store the master? */
  isStored: boolean;
  source: SnapshotSource;
  /** Undefined: no key can be stored. */
  keys: StoredKeys | undefined;
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
  keys,
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
      const known = { onlyKnownKeyFiles: isStored, storedKeys: keys?.names() };
      const job = { draft, folder, ...known, inForce, nowMs: clock.now() };
      const { workflows: _, ...verdict } = await drafts.check(job, signal);
      return verdict;
    },
    async *watchSnapshots(req, context) {
      const ending = AbortSignal.any([context.signal, closing]);
      const watched = req.wantsKeys && keys ? [source, keys] : [source];
      const sealed = () => (req.wantsKeys ? keys?.current() : undefined);
      let known = req.knownVersion;
      let knownKeys: ReturnType<typeof sealed>;
      while (!ending.aborted) {
        const [snapshot, keysNow] = [source.current(), sealed()];
        yield create(WatchSnapshotsResponseSchema, {
          ...(snapshot.version === known ? {} : { snapshot }),
          ...(keysNow && keysNow !== knownKeys ? { keys: { keys: keysNow.map(sealedKey) } } : {}),
          isRefused: source.isRefused(),
        });
        known = snapshot.version;
        knownKeys = keysNow;
        // A change during the sending of the message is sent at once.
        const isNewest = source.current() === snapshot && sealed() === keysNow;
        if (isNewest) await changeOrHeartbeat(watched, clock, ending);
      }
    },
  };
}

function sealedKey({ name, sealed }: StoredKey) {
  return { name, sealed };
}

/** Resolves at the next change, after 5 s, or when `ending` aborts. */
async function changeOrHeartbeat(
  watched: readonly Pick<SnapshotSource, "onChange">[],
  clock: Clock,
  ending: AbortSignal,
): Promise<void> {
  const changed = new AbortController();
  const offs = watched.map((one) => one.onChange(() => changed.abort()));
  await clock.sleep(heartbeatMs, AbortSignal.any([ending, changed.signal])).catch(() => {});
  for (const off of offs) off();
}
