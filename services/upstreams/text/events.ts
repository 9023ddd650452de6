import type { UpstreamsContext } from "./context.ts";
import type { UpstreamFailure } from "./failure.ts";

/** What is worth knowing of the upstream side: one function an event. None of them throws or names what was said. */
export interface UpstreamEvents {
  /** An upstream gave no answer. `isLast`: no other is tried. */
  failed(
    upstream: string,
    failure: UpstreamFailure,
    request: { id: string; callId: string; isLast: boolean },
  ): void;
  /**
   * An answer went past the bound of its output and was cut. `isTold`: upstream was told the bound, so it does not know it by
   * that name.
   */
  cut(upstream: string, isTold: boolean): void;
  /** A stream broke on a fault of our own. */
  broke(upstream: string, error: unknown): void;
}

/** Makes the recorder of a process. */
export function createUpstreamEvents({
  log,
  metrics,
  accounts,
}: Pick<UpstreamsContext, "log" | "metrics" | "accounts">): UpstreamEvents {
  const cuts = metrics.counter(
    "genmesh_text_upstream_cut_total",
    "Answers cut because they went past the bound of their output",
    ["upstream"],
  );
  return {
    failed(upstream, failure, { id, callId, isLast }) {
      const { kind, status, timedOut } = failure;
      if (kind === "account_empty") accounts?.empty(upstream, { status });
      const facts = { requestId: id, callId, upstream, kind, status, timedOut, fallsBack: !isLast };
      // A wrong request is the caller's; a missing key is the operator's to mend.
      if (kind === "misconfigured") log.error(facts, "upstream has no key");
      else if (kind === "invalid_request" || kind === "policy") log.info(facts, "upstream refused");
      else log.warn(facts, "upstream failed");
    },
    cut(upstream, isTold) {
      cuts.inc({ upstream });
      if (isTold)
        log.warn({ upstream }, "upstream does not keep to its output bound: see outputLimit");
    },
    broke(upstream, error) {
      log.error({ upstream, err: error }, "reading an upstream's stream broke");
    },
  };
}
