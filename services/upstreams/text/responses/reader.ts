// Passes a Responses stream of an upstream's on, and mends it where servers differ from OpenAI. `handlers.ts` has a function for
// each type of event.

import type { Reason } from "#kit/base/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import type { SseEvent } from "#kit/upstream/sse.ts";
import { failureOfError, reasonOfError, UpstreamFailure } from "../failure.ts";
import { UnseenNotes } from "../judging/hidden-output.ts";
import { isOutputDoneAfter } from "../judging/output-done.ts";
import { opaqueIn } from "../opaque.ts";
import { parseEvent, rewrite } from "../parse-event.ts";
import { faultOf } from "../pieces.ts";
import type { AnswerEvent, ReportedUsage } from "../port.ts";
import {
  type CutReason,
  failureOfCut,
  isByUs,
  reasonOfCut,
  type StreamReader,
} from "../stream-reader.ts";
import { responseNames } from "../usage.ts";
import { isFinalType, UsageNote } from "../usage-note.ts";
import { completeItem, isText } from "./complete-item.ts";
import {
  completeResponse,
  failedResponse,
  type ResponseFacts,
  type ResponseStatus,
} from "./complete-response.ts";
import { Emitter } from "./emitter.ts";
import { type EventHandler, handlers, other } from "./handlers.ts";
import { itemEvents } from "./item-events.ts";
import type { OpenItem } from "./output-tracker.ts";
import { OutputTracker } from "./output-tracker.ts";
import { makePlain } from "./plain-calls.ts";
import type { StreamState } from "./stream-state.ts";
import { isBare, takeOut } from "./visible-fields.ts";

const lifecycleTypes = new Set(["response.created", "response.queued", "response.in_progress"]);

/**
 * Makes a Responses stream whole for the official SDKs: the order of events, their numbers, ids, arrays and `response` objects. An
 * event that needs no change is sent with its original bytes.
 */
export class ResponsesReader implements StreamReader, StreamState {
  readonly facts: ResponseFacts;
  readonly emitter = new Emitter();
  readonly tracker: OutputTracker;
  isEnded = false;
  isOutputDone = false;
  readonly unseen = new UnseenNotes();
  readonly #reported = new Set<string>();
  /** The `response` of the last event that had one, made complete. */
  #response: JsonObject | undefined;
  #isCreated = false;
  #isInProgress = false;
  #readEvents = 0;
  readonly #usage = new UsageNote();
  /** Ends the stream. It waits until the events that came together with it were searched for usage. */
  #held: (() => void) | undefined;
  /** Does the answer's last event end the stream? */
  #isLast = false;

  constructor(facts: ResponseFacts) {
    this.facts = facts;
    this.tracker = new OutputTracker(this.emitter, facts);
  }

  /** The answer is over, but its usage is unknown. The upstream is read on for usage where the caller has the answer's beginning. */
  get isStopped(): boolean {
    const isTold = this.#isLast && this.#usage.reported !== undefined;
    return this.#held !== undefined && !isTold && this.#isCreated && !this.isEnded;
  }

  get usage(): ReportedUsage | undefined {
    return this.#usage.reported;
  }

  read(source: SseEvent, out: AnswerEvent[]): void {
    if (this.isEnded) return;
    this.emitter.out = out;
    const event = parseEvent(source);
    if (event === "nothing") return;
    if (event === "done") {
      // A failed answer is over at this point.
      this.end("end", out);
      return;
    }
    const type = event?.type;
    const handler = typeof type === "string" ? handlers.get(type) : undefined;
    const isDelta = handler !== undefined && event !== undefined && isBare(event);
    if (!isDelta && !this.#isReadable(event, source)) return;
    this.#readEvents++;
    if (this.#held) {
      this.#isLast ||= isFinalType(type);
      return;
    }
    this.isOutputDone = isOutputDoneAfter(event, this.isOutputDone);
    this.unseen.noteEvent(event);
    try {
      if (!isDelta) this.#take(event, source, handler);
      else {
        if (!this.#isInProgress) this.#begin();
        handler(this, event, source);
      }
    } catch (error) {
      if (!(error instanceof UpstreamFailure)) throw error;
      this.#fault(error.kind === "too_large" ? "too_large" : "garbage");
    }
  }

  /** Notes the usage in an event and makes it plain. False where there is nothing to pass on. */
  #isReadable(event: JsonObject | undefined, source: SseEvent): event is JsonObject {
    const isFinal = isFinalType(event?.type);
    if (event) this.#usage.note(event, isFinal);
    const fault = faultOf(event, source);
    if (fault || !event || !isText(event.type)) {
      this.#fault(fault ?? "garbage", isFinal);
      return false;
    }
    const isChanged = makePlain(event);
    if (isChanged) rewrite(source, event);
    return isChanged !== undefined;
  }

  #fault(reason: CutReason, isLast = false): void {
    this.#hold(() => this.#breakOff(reason), isLast);
  }

  settle(out: AnswerEvent[]): void {
    if (this.#held && !this.isStopped) this.end("end", out);
  }

  end(reason: CutReason, out: AnswerEvent[]): void {
    if (this.isEnded) return;
    this.emitter.out = out;
    if (this.#held) this.#held();
    else this.#breakOff(reason);
  }

  /** The first reason to end wins. */
  #hold(end: () => void, isLast = false): void {
    this.#held ??= end;
    this.#isLast ||= isLast;
  }

  #breakOff(reason: CutReason): void {
    if (this.#readEvents === 0) throw failureOfCut(reason);
    this.#fail(reasonOfCut(reason), isByUs(reason));
  }

  cut(out: AnswerEvent[]): void {
    if (this.isEnded) return;
    this.emitter.out = out;
    if (this.#held) {
      this.#held();
      return;
    }
    const { usage: _, ...found } = this.#response ?? {};
    this.#finish(found, "incomplete");
  }

  fresh(opaque: readonly string[]): string[] {
    const fresh = opaque.filter((state) => !this.#reported.has(state));
    for (const state of fresh) this.#reported.add(state);
    return fresh;
  }

  complete(response: JsonObject, status: ResponseStatus): JsonObject {
    const whole = completeResponse(response, this.facts, status);
    if (this.#response) whole.created_at = this.#response.created_at ?? 0;
    this.#response = whole;
    return whole;
  }

  #take(event: JsonObject, source: SseEvent, handler: EventHandler = other): void {
    const type = event.type as string;
    const response = isJsonObject(event.response) ? event.response : {};
    if (type === "error") {
      const error = isJsonObject(event.error) ? event.error : event;
      this.#hold(() => this.#refuse(error));
    } else if (type === "response.failed") {
      const error = isJsonObject(response.error) ? response.error : {};
      this.#hold(() => this.#refuse(error), true);
    } else if (type === "response.completed") {
      this.#hold(() => this.#finish(response, "completed"), true);
    } else if (type === "response.incomplete") {
      this.#hold(() => this.#finish(response, "incomplete"), true);
    } else if (lifecycleTypes.has(type)) this.#lifecycle(response, type);
    else {
      this.#begin();
      if (takeOut(event, this.facts.developerPrompt ?? "")) rewrite(source, event);
      handler(this, event, source);
    }
  }

  #lifecycle(found: JsonObject, type: string): void {
    if (type !== "response.created") this.#create();
    const status = type === "response.queued" ? "queued" : "in_progress";
    // Where the first event has output already, the stream was joined in its middle. Its items come in their own events.
    const shown = { ...this.complete(found, status), output: [] };
    this.#response = shown;
    this.#isCreated = true;
    if (type === "response.in_progress") this.#isInProgress = true;
    this.emitter.send({ type, response: shown });
  }

  /** Sends `created` where the upstream did not. */
  #create(): void {
    if (this.#isCreated) return;
    this.#isCreated = true;
    const response = this.complete({}, "in_progress");
    this.emitter.send({ type: "response.created", response });
  }

  /** Sends the beginning of the stream where the upstream did not. */
  #begin(): void {
    if (this.#isInProgress) return;
    this.#create();
    this.#isInProgress = true;
    const response = this.complete(this.#response ?? {}, "in_progress");
    this.emitter.send({ type: "response.in_progress", response });
  }

  #finish(found: JsonObject, status: "completed" | "incomplete"): void {
    this.#begin();
    const { items: output, text } = finalOutput(this, found.output, status);
    const told = { ...found, usage: this.#usage.objectIn(responseNames) ?? null };
    const response: JsonObject = { ...this.complete(told, status), error: null, output };
    if (status === "incomplete") response.incomplete_details ??= { reason: "max_output_tokens" };
    this.isEnded = true;
    const usage = this.#usage.reported;
    const opaque = this.fresh(opaqueIn(output));
    this.emitter.send(
      { type: `response.${status}`, response },
      { text, ending: status, usage, opaque },
    );
  }

  #refuse(error: JsonObject): void {
    // Nothing was sent and nothing used, so the caller gets an error instead of a stream.
    if (!this.#isCreated && !this.#usage.reported) throw failureOfError(error);
    this.#fail(reasonOfError(error));
  }

  #fail(reason: Reason, isByUs = false): void {
    this.#begin();
    const items = this.tracker.all();
    const output = items.map((item) => this.tracker.snapshot(item, "incomplete"));
    const usage = this.#usage.objectIn(responseNames) ?? null;
    const whole = this.complete({ ...this.#response, usage }, "failed");
    const response = failedResponse({ ...whole, output }, reason);
    this.isEnded = true;
    this.emitter.send(
      { type: "response.failed", response },
      { ending: "failed", usage: this.#usage.reported, isByUs },
    );
  }
}

/** The `output` of a terminal event. */
export interface FinalOutput {
  items: JsonObject[];
  /** Generated text that was not shown before. */
  text: string;
}

/**
 * The `output` of the terminal event. Open items and parts are closed before it. Items that the upstream shows only here get their
 * events. Every item keeps its name and its place in the stream.
 */
export function finalOutput(
  state: StreamState,
  found: JsonValue | undefined,
  status: "completed" | "incomplete",
): FinalOutput {
  const { tracker } = state;
  const shown = Array.isArray(found) ? found.filter(isJsonObject) : [];
  const streamed = [...tracker.all()];
  const twins = pair(shown, streamed);
  const shownAs = new Map(twins.map((open, at) => [open, shown[at]]));
  for (const open of streamed) close(state, open, shownAs.get(open), status);
  let text = "";
  for (const [at, item] of shown.entries()) {
    const twin = twins[at];
    if (twin) twin.item = renamed(state, item, twin);
    text += tracker.uncounted(twin ?? bringUp(state, item, status), item);
  }
  // In the order of the stream, not in that of the upstream's list. `output_index` is the place in the stream.
  return { items: tracker.all().map((open) => open.item), text };
}

/** Finds the streamed item of each shown item, by its name or else by its place and type. */
function pair(
  shown: readonly JsonObject[],
  streamed: readonly OpenItem[],
): (OpenItem | undefined)[] {
  const left = new Set(streamed);
  const byId = new Map<JsonValue | undefined, OpenItem>();
  const byType = new Map<JsonValue | undefined, OpenItem[]>();
  // Backwards, so that the first item of a name stays in the map, and each list is taken from its end.
  for (const open of streamed.toReversed()) {
    byId.set(open.id, open);
    const same = byType.get(open.type);
    if (same) same.push(open);
    else byType.set(open.type, [open]);
  }
  const take = (open: OpenItem | undefined) => (open && left.delete(open) ? open : undefined);
  const nextOf = (type: JsonValue | undefined) => {
    const same = byType.get(type);
    while (same && same.length > 0) {
      const open = take(same.pop());
      if (open) return open;
    }
    return undefined;
  };
  const named = shown.map(({ id }) => take(byId.get(id)));
  return shown.map(({ type }, at) => {
    const inPlace = streamed[at]?.type === type ? streamed[at] : undefined;
    return named[at] ?? take(inPlace) ?? nextOf(type);
  });
}

function close(
  state: StreamState,
  open: OpenItem,
  shown: JsonObject | undefined,
  status: "completed" | "incomplete",
): void {
  if (open.isDone) return;
  state.tracker.closeWithin(open, shown);
  const item = shown ? renamed(state, shown, open) : state.tracker.snapshot(open, status);
  open.item = item;
  open.isDone = true;
  state.emitter.send({ type: "response.output_item.done", output_index: open.index, item });
}

function renamed(state: StreamState, item: JsonObject, open: OpenItem): JsonObject {
  return completeItem(state.tracker.finished(open, item), state.facts);
}

/** Streams an item that upstream shows only in its last event. */
function bringUp(state: StreamState, found: JsonObject, status: string): OpenItem {
  const item = completeItem(found, state.facts, status);
  const open = state.tracker.begin({ ...item });
  open.item = item;
  open.isDone = true;
  for (const event of itemEvents(item, open.index)) {
    const text = typeof event.delta === "string" ? event.delta : "";
    open.counted += text.length;
    state.emitter.send(event, { text });
  }
  return open;
}
