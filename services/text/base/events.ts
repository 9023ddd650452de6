// Writes what happens to requests of text into the metrics and the log. All of text reports here, so that no prompt can come into
// a log elsewhere.

import type { Logger } from "#kit/base/logger.ts";
import type { Metrics } from "#kit/base/metrics.ts";
import type { ReportedUsage, TextOperation } from "../../upstreams/text/port.ts";
import type { EndKind } from "../metering/charge.ts";
import type { Charge, Intent, UsageRecord } from "../store/store.ts";

/** Reports events of the text service to the metrics and the log. Never a prompt, an answer or a key. */
export interface TextEvents {
  /** A request was closed, with this end and charge. */
  closed(request: Intent, end: EndKind, charge: Charge): void;
  /** Reported usage cannot be true. The count of genmesh is charged. */
  review(request: Intent, reported: ReportedUsage): void;
  /** The first output of a request is on its way, this long after the request came. */
  firstOutput(operation: TextOperation, elapsedMs: number): void;
  /** An answer is not kept for its idempotency key, because its account has reached its bound of kept bytes. */
  unkept(request: Intent): void;
  /** A recorded answer was replayed. */
  replayed(operation: TextOperation): void;
  /** A request joined one in flight. */
  joined(operation: TextOperation): void;
  /** This process has lost a request that it runs to another process. */
  lost(request: Intent): void;
  /** A request of a dead process was closed. */
  orphan(request: UsageRecord): void;
  /** Some work of genmesh failed. It will be tried again, or is left to the sweep. */
  trouble(what: string, requestId: string | undefined, error: unknown): void;
}

/** Makes the events of one service. */
export function createTextEvents(deps: { log: Logger; metrics: Metrics }): TextEvents {
  const { log, metrics } = deps;
  const count = createCounters(metrics);
  return {
    closed({ operation, modelId }, end, charge) {
      count.requests.of(operation, end).value++;
      if (charge.upstreamCostSource === "reported") {
        const isBelow = (charge.upstreamCost ?? 0n) > (charge.amount ?? 0n);
        count.costs.of(modelId, isBelow ? "below" : "covers").value++;
      }
      if (charge.amount === undefined) return;
      const source = charge.estimated ? "estimated" : "reported";
      count.tokens.of("input", source).value += charge.input;
      count.tokens.of("cached_input", source).value += charge.cachedInput;
      count.tokens.of("output", source).value += charge.output;
      count.charged.of(operation).value += Number(charge.amount);
    },
    review(request, reported) {
      count.reviews.of().value++;
      log.error(
        { ...facts(request), reported },
        "reported usage is not believable: charged by our own count",
      );
    },
    firstOutput: (operation, elapsedMs) =>
      count.firstOutput.of(operation).observe(elapsedMs / 1_000),
    unkept(request) {
      count.unkept.of().value++;
      log.info(facts(request), "an answer is not kept: its account has too many");
    },
    replayed(operation) {
      count.repeats.of(operation, "replayed").value++;
    },
    joined(operation) {
      count.repeats.of(operation, "joined").value++;
    },
    lost(request) {
      count.lost.of().value++;
      log.warn(facts(request), "a running request was taken over by another process");
    },
    orphan(request) {
      count.orphans.of().value++;
      log.warn({ ...facts(request), owner: request.owner }, "closed a request of a dead process");
    },
    trouble: (what, requestId, error) => log.warn({ requestId, err: error }, what),
  };
}

/** The counters of the service. */
function createCounters(metrics: Metrics) {
  return {
    requests: metrics.counter("genmesh_text_requests_total", "Text requests by their end.", [
      "operation",
      "end",
    ]),
    tokens: metrics.counter(
      "genmesh_text_tokens_total",
      "Tokens charged, as the upstream reported them or as estimated here.",
      ["direction", "source"],
    ),
    charged: metrics.counter(
      "genmesh_text_charged_usd_micros_total",
      "USD micros charged for text.",
      ["operation"],
    ),
    costs: metrics.counter(
      "genmesh_text_upstream_costs_total",
      "Text requests whose upstream reported its own cost, by whether the charge covers it.",
      ["model", "charge"],
    ),
    firstOutput: metrics.histogram(
      "genmesh_text_first_output_seconds",
      "From a text request's coming to its first output.",
      ["operation"],
    ),
    repeats: metrics.counter(
      "genmesh_text_repeats_total",
      "Text requests that were given another's answer at no cost: a recorded one, or one in flight.",
      ["operation", "kind"],
    ),
    reviews: metrics.counter(
      "genmesh_text_reviews_total",
      "Text requests whose reported usage was not believable.",
      [],
    ),
    unkept: metrics.counter(
      "genmesh_text_answers_unkept_total",
      "Answers not kept for their idempotency key: their account has too many.",
      [],
    ),
    orphans: metrics.counter(
      "genmesh_text_orphans_total",
      "Text requests of processes that are gone, which this one closed.",
      [],
    ),
    lost: metrics.counter(
      "genmesh_text_lost_total",
      "Running text requests that another process took over.",
      [],
    ),
  };
}

function facts({ requestId, accountId, modelId, operation }: Intent) {
  return { requestId, accountId, modelId, operation };
}
