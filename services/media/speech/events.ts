// Logs and counts speech requests and their ends.

import type { Logger } from "#kit/base/logger.ts";
import type { Metrics } from "#kit/base/metrics.ts";
import type { SpeechIntent } from "./store.ts";

/** The end of a speech request. */
export type SpeechEnd =
  | "completed"
  | "failed"
  | "unkept"
  | "content_policy"
  | "timeout"
  | "caller_left"
  | "stopped"
  | "orphan";

/** Metrics and logs of speech. Never a text or a key. */
export interface SpeechEvents {
  /** A request ended, `elapsedMs` after it was opened. All ends except `completed` and `unkept` cost nothing. */
  ended(request: SpeechIntent, end: SpeechEnd, elapsedMs: number): void;
  /** A recorded answer was sent again, or a request joined one in flight. */
  repeated(kind: "replayed" | "joined"): void;
  /** Another process took over a request that this process runs. */
  lost(request: SpeechIntent): void;
  /** A speech and its record were deleted at the end of their time. */
  expired(): void;
  /** A step of genmesh, or of an upstream, failed. */
  trouble(what: string, speechId: string | undefined, error: unknown): void;
}

/** Makes the events. */
export function createSpeechEvents(deps: { log: Logger; metrics: Metrics }): SpeechEvents {
  const { log, metrics } = deps;
  const ended = metrics.counter("genmesh_media_speech_total", "Speech requests by their end.", [
    "end",
  ]);
  const seconds = metrics.histogram("genmesh_media_speech_seconds", "Time of speech requests.", [
    "end",
  ]);
  const characters = metrics.counter(
    "genmesh_media_speech_characters_total",
    "Characters of speech that were charged.",
    [],
  );
  const charged = metrics.counter(
    "genmesh_media_speech_charged_usd_micros_total",
    "USD micros charged for speech.",
    [],
  );
  const repeats = metrics.counter(
    "genmesh_media_speech_repeats_total",
    "Speech requests that were given another's answer at no cost: a recorded one, or one in flight.",
    ["kind"],
  );
  const expired = metrics.counter(
    "genmesh_media_speech_expired_total",
    "Speeches removed because their time was over.",
    [],
  );
  return {
    ended(request, end, elapsedMs) {
      ended.of(end).value++;
      seconds.of(end).observe(elapsedMs / 1_000);
      if (end === "completed" || end === "unkept") {
        characters.of().value += request.characters;
        charged.of().value += Number(request.amount);
      }
      if (end === "orphan") log.warn(facts(request), "ended a speech request of a dead process");
    },
    repeated(kind) {
      repeats.of(kind).value++;
    },
    lost: (request) => log.warn(facts(request), "a running speech request was taken over"),
    expired() {
      expired.of().value++;
    },
    trouble: (what, speechId, error) => log.warn({ speechId, err: error }, what),
  };
}

function facts({ speechId, accountId, modelId, owner }: SpeechIntent) {
  return { speechId, accountId, modelId, owner };
}
