import type { Reason } from "#kit/base/errors.ts";
import type { JsonObject } from "#kit/base/json.ts";
import type { Place } from "#kit/upstream/slots.ts";
import type { Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { Unseen, UnseenNotes } from "./judging/hidden-output.ts";

/** Which public operation a request belongs to; its body and its answer have that operation's format. */
export type TextOperation = "responses" | "compact" | "chat" | "embeddings" | "transcriptions";

/** Sound that is to be transcribed. */
export interface Sound {
  bytes: Uint8Array<ArrayBuffer>;
  /** With an ending: upstreams look at it. */
  fileName: string;
  mimeType: string;
  /** How long its container says that it is, in {@link soundUnitMs}. */
  units: number;
  /** How long it can be at the most, in the same: what is held for. */
  mostUnits: number;
}

/** Sound is counted in thousandths of a minute, in ms: so a price for a minute is a whole one for a million of them. */
export const soundUnitMs = 60;

/** So many units in whole seconds, as OpenAI rounds them. */
export function secondsOfUnits(units: number): number {
  return Math.max(1, Math.round((units * soundUnitMs) / 1_000));
}

/** Usage as an upstream reported it, not yet believed: numbers of any kind. */
export interface ReportedUsage {
  inputTokens: number;
  /** A subset of the input tokens. */
  cachedInputTokens: number;
  outputTokens: number;
  /** Reported while output was still to come, and none since: the answer used at least this. */
  isRunning?: boolean;
  /** A subset of the output tokens; absent: upstream told nothing of it. For the record alone: it costs nothing more. */
  reasoningTokens?: number;
}

/** The most output that a request paid for. */
export interface OutputBound {
  tokens: number;
  /** Tokens of all texts together; stops above `limit`. Never rejects: what cannot be counted is guessed. */
  count(texts: readonly string[], limit?: number): Promise<number>;
}

/** A request that was validated, paid for by a hold, and may be sent. */
export interface UpstreamRequest {
  /** The caller's, for its share of what accounts have in common. */
  accountId: string;
  operation: TextOperation;
  /**
   * The whole body in the operation's own format as it is to go up: developer prompt in place, `store: false`, effort
   * resolved. `model` is still the public id; the driver puts `upstreamModel` in its place.
   */
  body: JsonObject;
  /** What is transcribed; of no other operation. */
  sound?: Sound | undefined;
  /** Properties of the request as the caller sent them. */
  asked: JsonObject;
  /** Properties within them that did not go up, by their path; absent: none. */
  leftOut?: readonly string[] | undefined;
  /** Properties that the model's upstreams are said to take. */
  passParameters: readonly string[];
  stream: boolean;
  /**
   * Most tokens of output, which upstream is told in the name that it knows; undefined: it is told nothing, and its own
   * maximum applies.
   */
  maxOutputTokens: number | undefined;
  /** An answer that goes past it is cut, also where upstream was told another bound or keeps to none. */
  outputBound: OutputBound;
  /** Public id: what every answer shows as `model`. */
  modelId: string;
  upstreamModel: string;
  /** In the order of trying; at least one. A fallback is used only before any output. */
  upstreams: readonly Upstream[];
  /** What `response.instructions` shows: the caller's own, never the developer prompt. */
  callerInstructions: string | null;
  /** The configured prompt that is in the body; "" or undefined: none. */
  developerPrompt?: string;
  /** The `x-request-id` of the caller's answer, by which the gateway's log names the request. */
  callId: string;
  /** Its answer is named after it. */
  requestId: string;
  /** Called when the first byte may have gone out. A request that is given up before costs nothing. */
  onSent?: () => void;
  /** Called with the header's names of those properties of `asked` that had no effect, once an upstream has answered. */
  onIgnored?: (names: readonly string[]) => void;
  /** Called when an answer that comes whole is on its way: all of it is generated. */
  onAnswering?: () => void;
  /**
   * Resolves when a whole answer may have so many bytes in memory; what is to come of it waits at its upstream. Rejects where there is no room in time.
   * Absent: it may have any number.
   */
  reach?: (bytes: number) => Promise<void>;
  /** Aborts when the last caller left, the deadline passed or the process lost the request: upstream is closed at once. */
  signal: AbortSignal;
}

/** How an answer ended. `failed` covers a stream that was cut. */
export type Ending = "completed" | "incomplete" | "failed";

/** A complete answer. */
export interface JsonAnswer {
  kind: "json";
  /** In the operation's public format, complete, ready to be sent. */
  body: Uint8Array;
  ending: Ending;
  /** It went past the bound of its output and was cut here. */
  isCut?: boolean;
  /** Set where it failed: what the caller is told. */
  failure?: Reason;
  /** What upstream reported; undefined where it reported nothing. */
  usage: ReportedUsage | undefined;
  /** Generated text (output, reasoning, function arguments), for an estimate where no usage came. */
  outputText: string;
  /** What of the output is not in the text; absent: nothing. */
  unseen?: Unseen;
  /** Opaque state in the output (encrypted_content, compaction), to be remembered by its hash. */
  opaque: readonly string[];
  /** Name of the upstream that answered. */
  upstream: string;
}

/** One server-sent event, ready to be written. */
export interface AnswerEvent {
  /** The whole frame, `event:` and `data:` lines and the empty line, in the operation's public format. */
  frame: Uint8Array;
  /** Generated text in it that counts as output; "" for none. */
  text: string;
  /** Set on the event that carries the final usage. */
  usage?: ReportedUsage;
  /** Set on the terminal event. Nothing but `[DONE]` (which the driver does not send) follows it. */
  ending?: Ending;
  /** On the terminal event: as in {@link JsonAnswer}. */
  isCut?: boolean;
  /** On a terminal event that failed: a bound or a time-out of ours ended the stream, not its upstream. */
  isByUs?: boolean;
  /** As in {@link JsonAnswer}. */
  opaque?: readonly string[];
}

/** An answer as it comes. */
export interface StreamAnswer {
  kind: "stream";
  /**
   * Events in batches of what was ready together. Ends after exactly one event with `ending`; a cut upstream is an event
   * with `ending: "failed"` (chat: the error event). A reader that takes no more holds back the upstream. Throws only the
   * signal's reason.
   */
  batches: AsyncIterable<readonly AnswerEvent[]>;
  upstream: string;
  /** Its place at an upstream that has a bound; absent: none. */
  place?: Place;
  /** Did the reader keep upstream waiting, so that a break may be the reader's doing? Absent: it cannot. */
  isHeldBack?(): boolean;
  /**
   * Reads what has arrived already, behind a reader that left, for a moment and without counting it against the bound: an upstream may have
   * made all at once, or have ended long before, and its usage lie in the kernels' buffers. Nothing is read afterwards. Never rejects.
   */
  readArrived?(note: (events: readonly AnswerEvent[]) => void): Promise<void>;
  /** Has all output come that was begun, so that only usage and the terminal event are awaited? Absent: not known. */
  isOutputDone?(): boolean;
  /** What the model did that was not shown; it goes on as the stream does. Absent: nothing. */
  unseen?: Readonly<UnseenNotes>;
  /** What upstream reported so far. Absent: it reports at the end alone. */
  usageSoFar?(): ReportedUsage | undefined;
}

/** Sends requests to upstreams. */
export interface TextUpstreams {
  /**
   * Resolves with the answer's beginning: for a stream, when its first event is there. Refuses, always before any output,
   * with MODEL_REQUEST_FAILED, UPSTREAM_TIMEOUT, INVALID_VALUE (upstream's 400 and 422), CONTENT_POLICY_VIOLATION or
   * MODEL_NOT_RESPONSES_CAPABLE; aborting rejects with the signal's reason.
   */
  send(request: UpstreamRequest): Promise<JsonAnswer | StreamAnswer>;
}
