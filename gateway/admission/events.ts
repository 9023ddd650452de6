// Logs and counts what admission does: look-ups of keys, refusals, broken watches.

import { type Reason, reasonName } from "#kit/base/errors.ts";
import type { Logger } from "#kit/base/logger.ts";
import type { Metrics } from "#kit/base/metrics.ts";

/** The way in which a watch of keys ended. */
export type WatchEnd = "ended" | "failed" | "reset" | "silent";

/** Events of admission for the operator. */
export interface AdmissionEvents {
  lookedUp(outcome: "found" | "invalid" | "failed"): void;
  refused(reason: Reason): void;
  cacheChanged(keys: number): void;
  /** Auth did not answer, so this gateway counts requests alone. */
  rateUnshared(error: unknown): void;
  /** `inARow`: watches in a row that ended before any message. The first of them is logged, and each is counted. */
  watchEnded(how: WatchEnd, inARow: number, error?: unknown): void;
}

/** Makes the counters. */
export function createAdmissionEvents(deps: { log: Logger; metrics: Metrics }): AdmissionEvents {
  const { log, metrics } = deps;
  const lookUps = metrics.counter(
    "genmesh_gateway_key_look_ups_total",
    "Keys that the gateway asked auth about, by outcome.",
    ["outcome"],
  );
  const refusals = metrics.counter(
    "genmesh_gateway_admission_refusals_total",
    "Requests refused for their key, scope or rate.",
    ["reason"],
  );
  const unshared = metrics.counter(
    "genmesh_gateway_rates_unshared_total",
    "Times that a gateway counted requests for itself, because auth did not answer.",
    [],
  );
  const cached = metrics.gauge("genmesh_gateway_cached_keys", "Valid secrets in the cache.", []);
  const ends = metrics.counter("genmesh_gateway_key_watch_ends_total", "Ended watches of keys.", [
    "how",
  ]);
  return {
    lookedUp(outcome) {
      lookUps.of(outcome).value++;
    },
    refused(reason) {
      refusals.of(reasonName(reason).toLowerCase()).value++;
    },
    cacheChanged(keys) {
      cached.of().value = keys;
    },
    rateUnshared(error) {
      unshared.of().value++;
      log.warn({ err: error }, "rates are not shared: auth does not answer");
    },
    watchEnded(how, inARow, error) {
      ends.of(how).value++;
      if (inARow > 1) return;
      const level = how === "ended" ? "info" : "warn";
      log[level](
        { how, ...(error === undefined ? {} : { err: error }) },
        "the watch of keys ended",
      );
    },
  };
}
