// Logs and counts what happens at upstreams of text, without any text of a request or an answer.

import type { Pools } from "../pools/index.ts";
import type { UpstreamsContext } from "./context.ts";
import type { UpstreamFailure } from "./failure.ts";

/**
 * Reports events of the upstream side to the log and the metrics, with a function for each. None of them throws, or names the text of a
 * request or answer.
 */
export interface UpstreamEvents {
  /** An upstream gave no answer. `isLast`: no other is tried. */
  failed(
    upstream: string,
    failure: UpstreamFailure,
    request: { id: string; callId: string; isLast: boolean },
  ): void;
  /**
   * An answer went past the bound of its output and was cut. `isTold`: the upstream got the bound, so it does not know it by that name.
   */
  cut(upstream: string, isTold: boolean): void;
  /** An upstream broke off a stream that had begun. */
  brokeOff(upstream: string): void;
  /** A stream broke on a fault of genmesh. */
  broke(upstream: string, error: unknown): void;
}

/** Makes the recorder of a process. */
export function createUpstreamEvents(
  { log, metrics, accounts }: Pick<UpstreamsContext, "log" | "metrics" | "accounts">,
  pools: Pick<Pools, "brokeOff">,
): UpstreamEvents {
  const cuts = metrics.counter(
    "genmesh_text_upstream_cut_total",
    "Answers cut because they went past the bound of their output",
    ["upstream"],
  );
  return {
    failed(upstream, failure, { id, callId, isLast }) {
      const { kind, status, timedOut } = failure;
      if (kind === "account_empty" || status === 402) accounts?.empty(upstream, { status });
      const facts = { requestId: id, callId, upstream, kind, status, timedOut, fallsBack: !isLast };
      // The caller must correct a wrong request. The operator must add a missing key.
      if (kind === "misconfigured") log.error(facts, "upstream has no key");
      else if (kind === "invalid_request" || kind === "policy") log.info(facts, "upstream refused");
      else log.warn(facts, "upstream failed");
    },
    cut(upstream, isTold) {
      cuts.of(upstream).value++;
      if (isTold)
        log.warn({ upstream }, "upstream does not keep to its output bound: see outputLimit");
    },
    brokeOff: (upstream) => pools.brokeOff(upstream),
    broke(upstream, error) {
      log.error({ upstream, err: error }, "reading an upstream's stream broke");
    },
  };
}
