// Gives every process that asks for models the catalog in force. It watches the catalog service, keeps the last snapshot in
// memory, and finds models and their upstreams in it.

import type { Client } from "@connectrpc/connect";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { Logger } from "#kit/base/logger.ts";
import type { Clock } from "#kit/time/clock.ts";
import type {
  CatalogService,
  Model,
  ModelKind,
  SealedKey,
  Snapshot,
  Upstream,
} from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";

/** One snapshot with its indexes. A request or job takes one and uses it to its end. */
export interface CatalogView {
  readonly snapshot: Snapshot;
  /** In the catalog's order, without the inactive ones. */
  readonly activeModels: readonly Model[];
  /** Refuses with MODEL_NOT_FOUND where no active model has the id, or where it is of another kind. */
  findModel(id: string, kind?: ModelKind): Model;
  /** The upstreams of a model, in the order in which they are tried: its upstream, then its fallbacks. */
  upstreamsOf(model: Model): readonly Upstream[];
}

/** Keeps the snapshot in force, so that a request needs no call for it. */
export interface LiveCatalog extends AsyncDisposable {
  /** The view in force. Refuses with SERVICE_UNAVAILABLE where none has come yet. */
  current(): CatalogView;
  /** Resolves with the first snapshot; never rejects. */
  ready(): Promise<void>;
  /** Is the catalog as it stands broken, so that an earlier one is in force? Known within a heartbeat. */
  isRefused(): boolean;
  /** Undefined once there is a snapshot. Otherwise one line with the reason. */
  notReady(): string | undefined;
}

/** The parts that a live catalog needs. */
export interface CatalogViewDeps {
  catalog: Client<typeof CatalogService>;
  clock: Clock;
  log: Logger;
  /** The first call waits for this. Default: it does not wait. */
  after?: Promise<void>;
  /** Gets the stored keys of upstreams, sealed, before the snapshot that names them. Absent: they are not asked for. */
  onKeys?: ((keys: readonly SealedKey[]) => void) | undefined;
}

/** Wait before the first new attempt, in milliseconds. It doubles with each that fails. */
const firstRetryMs = 50;
/** Longest wait between two attempts, in milliseconds, so that a change arrives soon after an outage. */
const maxRetryMs = 2_000;
/** Silence after which a watch counts as dead, in milliseconds: three heartbeats. */
const silenceMs = 15_000;
/** Failed attempts before the log gets a line. A peer that restarts is back by then. */
const quietAttempts = 6;

/**
 * Follows the catalog from now on. While the catalog is away, the last snapshot stays in force and the watch is tried
 * again and again.
 */
export function createCatalogView(deps: CatalogViewDeps): LiveCatalog {
  const { catalog, clock, log, after, onKeys } = deps;
  const stop = new AbortController();
  const first = Promise.withResolvers<void>();
  let view: CatalogView | undefined;
  let isBroken = false;

  /** One watch to its end. True where it brought anything. */
  const watch = async (): Promise<boolean> => {
    const call = new AbortController();
    const signal = AbortSignal.any([stop.signal, call.signal]);
    let heardAtMs = clock.steady();
    let heard = false;
    whenSilent(clock, () => heardAtMs, signal).then(
      () => call.abort(),
      () => {},
    );
    try {
      const knownVersion = view?.snapshot.version ?? "";
      const asked = { knownVersion, wantsKeys: onKeys !== undefined };
      const watching = catalog.watchSnapshots(asked, { signal });
      for await (const { snapshot, isRefused, keys } of watching) {
        heardAtMs = clock.steady();
        heard = true;
        isBroken = isRefused;
        if (keys) onKeys?.(keys.keys);
        if (!snapshot || snapshot.version === view?.snapshot.version) continue;
        view = viewOf(snapshot);
        first.resolve();
        log.info({ catalogVersion: snapshot.version }, "catalog snapshot in force");
      }
    } catch (error) {
      log.debug({ err: error }, "catalog watch ended");
    } finally {
      call.abort();
    }
    return heard;
  };

  const follow = async () => {
    await after;
    let failed = 0;
    while (!stop.signal.aborted) {
      failed = (await watch()) ? 0 : failed + 1;
      if (failed === quietAttempts && !stop.signal.aborted) {
        log.warn({ hasSnapshot: view !== undefined }, "catalog cannot be reached");
      }
      const waitMs = Math.min(firstRetryMs * 2 ** Math.min(failed, 10), maxRetryMs);
      await clock.sleep(waitMs, stop.signal).catch(() => {});
    }
  };
  const following = follow();

  return {
    current: () => view ?? refuse(ErrorReason.SERVICE_UNAVAILABLE),
    ready: () => first.promise,
    isRefused: () => isBroken,
    notReady: () => (view ? undefined : "no catalog snapshot has come yet"),
    async [Symbol.asyncDispose]() {
      stop.abort();
      await following;
    },
  };
}

/** Makes the view of a snapshot; its indexes are built once. */
export function viewOf(snapshot: Snapshot): CatalogView {
  const activeModels = snapshot.models.filter((model) => model.active);
  const byId = new Map(activeModels.map((model) => [model.id, model]));
  const upstreams = new Map(activeModels.map((model) => [model, upstreamsIn(snapshot, model)]));
  return {
    snapshot,
    activeModels,
    findModel(id, kind) {
      const model = byId.get(id);
      if (!model || (kind !== undefined && model.kind !== kind)) {
        refuse(ErrorReason.MODEL_NOT_FOUND, { param: "model", metadata: { model: id } });
      }
      return model;
    },
    upstreamsOf: (model) => upstreams.get(model) ?? upstreamsIn(snapshot, model),
  };
}

function upstreamsIn(snapshot: Snapshot, model: Model): Upstream[] {
  return [model.upstream, ...model.fallbackUpstreams].flatMap((name) =>
    Object.hasOwn(snapshot.upstreams, name) ? (snapshot.upstreams[name] ?? []) : [],
  );
}

/** Resolves after 15 s without a message. Rejects when `signal` aborts. */
async function whenSilent(
  clock: Clock,
  heardAtMs: () => number,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    const leftMs = heardAtMs() + silenceMs - clock.steady();
    if (leftMs <= 0) return;
    await clock.sleep(leftMs, signal);
  }
}
