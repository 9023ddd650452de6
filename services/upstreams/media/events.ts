// Logs and counts what happens at upstreams of media, without anything that a caller or an upstream wrote.

import type { Logger } from "#kit/base/logger.ts";
import type { Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { keyNameOf } from "../call.ts";
import type { DriverContext } from "./context.ts";
import { StatusError } from "./faults.ts";
import { type GenerationError, NotTakenError } from "./port.ts";

/** Errors that only a mistake in our own code throws. */
const ownMistakes = [TypeError, ReferenceError, SyntaxError] as const;

/** The work that an event belongs to. */
export interface Work {
  upstream: Upstream;
  /** The kind of output: image, video, music, speech. */
  kind: string;
  /** The job's id, or the speech request's. */
  id: string;
}

/** The counts of all drivers. */
export type UpstreamFigures = ReturnType<typeof createFigures>;

/** Registers the counts, once in a process. */
export function createFigures({ metrics }: Pick<DriverContext, "metrics">) {
  return {
    unknownStates: metrics.counter(
      "genmesh_upstream_unknown_states_total",
      "Looks at tasks of upstreams that named a state which the catalog does not have",
      ["upstream"],
    ),
  };
}

/** An attempt failed. The log gets the upstream's status and code where it gave some, never its text. */
export function attemptFailed(
  { log, accounts }: Pick<DriverContext, "log" | "accounts">,
  work: Work,
  error: GenerationError,
): void {
  const { fault } = error;
  const found = [error, error.cause].find((cause) => cause instanceof StatusError);
  if (error instanceof NotTakenError && error.refusal === "account_empty") {
    accounts?.empty(work.upstream.name, found ?? {});
  }
  if (found && fault !== "content_policy" && [401, 403].includes(found.status)) {
    if (!found.isAccountEmpty) accounts?.keyRefused(work.upstream.name, keyNameOf(work.upstream));
  }
  const fields = { ...named(work), fault, reason: error.message };
  const isOurs = ownMistakes.some((type) => error.cause instanceof type);
  const isRefusedOf = error instanceof NotTakenError && error.refusal === "denied";
  const isDenied = found !== undefined && [401, 402, 403, 404].includes(found.status);
  if (found && (isRefusedOf || isDenied) && fault !== "content_policy") {
    log.error({ ...fields, ...answered(found) }, "media upstream denies what is configured");
  } else if (isOurs) {
    log.error({ ...fields, stack: (error.cause as Error).stack }, "media driver broke");
  } else if (found) {
    log.warn({ ...fields, ...answered(found) }, "media upstream refused");
  } else {
    log.warn({ ...fields, cause: nameOf(error.cause) }, "media generation failed at upstream");
  }
}

/** An upstream could not be asked to cancel a task. */
export function cancelFailed(log: Logger, work: Work, error: Error): void {
  log.warn({ ...named(work), cause: nameOf(error.cause) }, "a task goes on at the media upstream");
}

/** The variable or the file of an upstream's key holds none. */
export function keyMissing(
  { log, accounts }: Pick<DriverContext, "log" | "accounts">,
  upstream: Upstream,
): void {
  accounts?.keyRefused(upstream.name, keyNameOf(upstream));
  const fields = { upstream: upstream.name, key: keyNameOf(upstream) };
  log.error(fields, "the key of a media upstream is not there");
}

/** A step is tried again. */
export function repeating(log: Logger, tries: number, pauseMs: number, error: unknown): void {
  log.debug({ tries, pauseMs, cause: nameOf(error) }, "repeating a step at a media upstream");
}

/** Data that was put at an upstream beside the task could not be removed. */
export function leftBehind(log: Logger, work: Work): void {
  log.warn(named(work), "a reference stays at the media upstream");
}

function named({ upstream, kind, id }: Work) {
  return { upstream: upstream.name, kind, id };
}

function answered({ status, code }: StatusError) {
  return { status, ...(code ? { code } : {}) };
}

/** Kinds and codes only: messages of lower layers name hosts. */
function nameOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { kind, code } = error as { kind?: unknown; code?: unknown };
  return [error.name, kind, code].filter((part) => typeof part === "string").join(" ");
}
