// The agreement between the text service and the upstreams of text: a request that was paid for, its answer, its usage.
// `index.ts` implements it.

import type { Reason } from "#kit/base/errors.ts";
import type { JsonObject } from "#kit/base/json.ts";
import type { StopSignal } from "#kit/base/stop.ts";
import type { Place } from "#kit/upstream/slots.ts";
import type { Upstream, UpstreamShare } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { Unseen, UnseenNotes } from "./judging/hidden-output.ts";

/** The public operation of a request. Its body and its answer have that operation's format. */
export type TextOperation =
  | "responses"
  | "compact"
  | "chat"
  | "messages"
  | "embeddings"
  | "transcriptions";

/** Audio to be transcribed. */
export interface Sound {
  bytes: Uint8Array<ArrayBuffer>;
  /** With a file extension, because upstreams look at it. */
  fileName: string;
  mimeType: string;
  /** Its length by its container, in {@link soundUnitMs}. */
  units: number;
  /** Its greatest possible length in the same unit. The hold is for this length. */
  mostUnits: number;
}

/** Milliseconds of one unit of audio, a thousandth of a minute. So the price of a minute is a whole number for a million units. */
export const soundUnitMs = 60;

/** This many units in whole seconds, rounded like OpenAI does. */
export function secondsOfUnits(units: number): number {
  return Math.max(1, Math.round((units * soundUnitMs) / 1_000));
}

/** Usage as an upstream reported it. It is not checked yet: the numbers may be of any kind. */
export interface ReportedUsage {
  inputTokens: number;
  /** A subset of the input tokens. */
  cachedInputTokens: number;
  outputTokens: number;
  /** True where it was reported while output was still to come, and no report followed. The answer used at least this much. */
  isRunning?: boolean;
  /** A subset of the output tokens. Absent: the upstream did not report it. It is for the record alone, and costs nothing more. */
  reasoningTokens?: number;
  /** Parts that may have prices of their own. Absent: the upstream reported none. */
  details?: UsageDetails;
}

/** Parts of a report that may have prices of their own. An absent one was not reported, or was 0. They are not checked yet. */
export interface UsageDetails {
  /** Input tokens that were written to a cache, those of long entries included. */
  cacheWrite?: number;
  /** Of these, the tokens of long entries. Absent: the report does not split them. */
  cacheWriteLong?: number;
  /** Input tokens of audio, those from a cache included. */
  audioInput?: number;
  cachedAudioInput?: number;
  imageInput?: number;
  audioOutput?: number;
  imageOutput?: number;
  /** Calls of the upstream's tools, by their family. */
  toolCalls?: Readonly<Record<string, number>>;
  /** Calls that were counted without a name of their tool. Those of `toolCalls` may be among them. */
  unnamedCalls?: number;
  /** The service tier that the answer names. */
  servedTier?: string;
  /** USD micros that the upstream itself charged, rounded up. */
  costUsdMicros?: number;
}

/** The most output that a request paid for. */
export interface OutputBound {
  tokens: number;
  /** Counts the tokens of all texts together, and stops above `limit`. Never rejects: where counting fails, the number is guessed. */
  count(texts: readonly string[], limit?: number): Promise<number>;
}

/** A request that was validated, has a hold for its cost, and may be sent. */
export interface UpstreamRequest {
  /** The caller's account, for its share of everything that accounts have in common. */
  accountId: string;
  operation: TextOperation;
  /**
   * The whole body in the operation's own format, ready to be sent: developer prompt in place, `store: false`, effort resolved. `model`
   * is still the public id. The driver replaces it by `upstreamModel`.
   */
  body: JsonObject;
  /** The audio to be transcribed. No other operation has it. */
  sound?: Sound | undefined;
  /** Properties of the request as the caller sent them. */
  asked: JsonObject;
  /** Nested properties that were not sent to the upstream, by their path. Absent: none. */
  leftOut?: readonly string[] | undefined;
  /** Beta features that a client of Anthropic's asks for. Absent: none. */
  betas?: readonly string[] | undefined;
  /** Properties that the model's upstreams take according to the catalog. */
  passParameters: readonly string[];
  /** At an upstream of Messages: is thinking dropped there that was made behind another beginning? Absent: yes. */
  dropsBlocks?: boolean;
  stream: boolean;
  /**
   * The most tokens of output. The upstream gets it under the name that it knows. Undefined: the upstream gets no bound, and its own
   * maximum applies.
   */
  maxOutputTokens: number | undefined;
  /** An answer that goes past this bound is cut, also where the upstream got another bound or keeps to none. */
  outputBound: OutputBound;
  /** Public id. Every answer shows it as `model`. */
  modelId: string;
  upstreamModel: string;
  /** In the order of trying, at least one. A fallback is used only before any output. */
  upstreams: readonly Upstream[];
  /** How these upstreams share requests. Absent: each is asked only where those before it could not answer. */
  shares?: readonly UpstreamShare[];
  /** The name of the conversation, whose requests go to the same upstream. Absent: the request is alone. */
  stick?: string;
  /** Has the model other upstreams, which may not get this request, because its opaque state is of this one? */
  isPinned?: boolean;
  /** The caller's own instructions, for `response.instructions`. Never the developer prompt. */
  callerInstructions: string | null;
  /** The configured prompt that is in the body. "" or undefined: none. */
  developerPrompt?: string;
  /** The `x-request-id` of the caller's answer. The gateway's log names the request by it. */
  callId: string;
  /** The id of the request. Its answer is named after it. */
  requestId: string;
  /** Called when a try at a lane has failed. */
  onFailedTry?: (failed: { lane: string; kind: string; status: number | undefined }) => void;
  /** Called when the first byte may have been sent. A request that is given up before costs nothing. */
  onSent?: () => void;
  /**
   * Called once an upstream has answered, with the names of those properties of `asked` that had no effect. They have their form for
   * the header.
   */
  onIgnored?: (names: readonly string[]) => void;
  /** Called when an answer that comes whole is on its way. All of it is generated then. */
  onAnswering?: () => void;
  /**
   * Resolves when a whole answer may have this many bytes in memory. The rest of it waits at its upstream. Rejects where there is no
   * room in time. Absent: it may have any number.
   */
  reach?: (bytes: number) => Promise<void>;
  /** Aborts when the last caller left, the deadline passed or the process lost the request. The upstream is closed at once. */
  signal: StopSignal;
}

/** How an answer ended. A cut stream is `failed`. */
export type Ending = "completed" | "incomplete" | "failed";

/** A complete answer. */
export interface JsonAnswer {
  kind: "json";
  /** The answer in the operation's public format, complete. Bytes where it came so, or where it has large parts. */
  body: JsonObject | Uint8Array;
  ending: Ending;
  /** True where it went past the bound of its output and was cut here. */
  isCut?: boolean;
  /** Set where it failed: the reason that the caller gets. */
  failure?: Reason;
  /** The usage that the upstream reported. Undefined where it reported none. */
  usage: ReportedUsage | undefined;
  /** Generated text (output, reasoning, function arguments), for an estimate where no usage came. */
  outputText: string;
  /** Output that is not in the text. Absent: none. */
  unseen?: Unseen;
  /** Opaque state in the output (encrypted_content, compaction). It is remembered by its hash. */
  opaque: readonly string[];
  /** Name of the upstream that answered. */
  upstream: string;
}

/** The bytes of an answer's body. */
export function bytesOfBody(body: JsonAnswer["body"]): Uint8Array {
  return body instanceof Uint8Array ? body : Buffer.from(JSON.stringify(body));
}

/** One server-sent event, ready to be written. */
export interface AnswerEvent {
  /** The whole frame in the operation's public format: `event:` and `data:` lines and the empty line. */
  frame: Uint8Array;
  /** Generated text in the event that counts as output. "" for none. */
  text: string;
  /** Set on the event that carries the final usage. */
  usage?: ReportedUsage;
  /** Set on the terminal event. Only `[DONE]` follows it, which the driver does not send. */
  ending?: Ending;
  /** On the terminal event, as in {@link JsonAnswer}. */
  isCut?: boolean;
  /** Set on a terminal event that failed: a bound or a time-out of genmesh ended the stream, not its upstream. */
  isByUs?: boolean;
  /** As in {@link JsonAnswer}. */
  opaque?: readonly string[];
}

/** An answer that comes as a stream. */
export interface StreamAnswer {
  kind: "stream";
  /**
   * Events in batches of those that were ready together. They end after exactly one event with `ending`. A cut upstream becomes an
   * event with `ending: "failed"` (chat: the error event). A reader that stops taking events holds back the upstream. Throws only the
   * signal's reason.
   */
  batches: AsyncIterable<readonly AnswerEvent[]>;
  upstream: string;
  /** The stream's place at an upstream that has a bound. Absent: none. */
  place?: Place;
  /** Did the reader keep the upstream waiting, so that a break may be the reader's doing? Absent: it cannot. */
  isHeldBack?(): boolean;
  /**
   * After its reader has left, reads for a moment the bytes that have arrived already, without counting them against the bound. The
   * upstream may have made all at once, or have ended long before, and its usage may be in the kernels' buffers. Nothing is read
   * afterwards. Never rejects.
   */
  readArrived?(note: (events: readonly AnswerEvent[]) => void): Promise<void>;
  /** Has all output come that was begun, so that only usage and the terminal event are awaited? Absent: unknown. */
  isOutputDone?(): boolean;
  /** Hidden output of the model. It grows as the stream goes on. Absent: none. */
  unseen?: Readonly<UnseenNotes>;
  /** The usage that the upstream reported so far. Absent: it reports at the end alone. */
  usageSoFar?(): ReportedUsage | undefined;
}

/** Sends requests to upstreams. */
export interface TextUpstreams {
  /**
   * Resolves with the answer's beginning: for a stream, when its first event has come. Refuses, always before any output, with
   * MODEL_REQUEST_FAILED, UPSTREAM_TIMEOUT, INVALID_VALUE (the upstream's 400 and 422), CONTENT_POLICY_VIOLATION or
   * MODEL_NOT_RESPONSES_CAPABLE. Aborting rejects with the signal's reason.
   */
  send(request: UpstreamRequest): Promise<JsonAnswer | StreamAnswer>;
  /**
   * The tokens of a message's input as the first upstream counts them that may be asked. It is no request, and costs nothing. Undefined
   * where that one does not speak Messages, or gives no number. Absent: none is asked. Aborting rejects with the signal's reason.
   */
  count?(request: CountRequest): Promise<number | undefined>;
}

/** A message whose input is to be counted. */
export interface CountRequest
  extends Pick<
    UpstreamRequest,
    "body" | "betas" | "passParameters" | "modelId" | "upstreamModel" | "upstreams" | "signal"
  > {
  shares: readonly UpstreamShare[];
  /** The name of the conversation. */
  stick: string;
  dropsBlocks: boolean;
}
