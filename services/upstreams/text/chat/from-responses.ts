// Translates a Responses stream into the chunks of a chat stream, as they come.

import type { Reason } from "#kit/base/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { textOfDeltaEvent, textOfItem } from "../generated-text.ts";
import { opaqueIn } from "../opaque.ts";
import { isText } from "../responses/complete-item.ts";
import { TranslatedReader } from "../translated-reader.ts";
import { chatUsageOf, responseNames } from "../usage.ts";
import { ChunkWriter, errorChunk } from "./chunks.ts";
import { annotationOf, finishReasonOf } from "./completion.ts";
import { KeptStates } from "./kept-state.ts";
import { StopSearch } from "./stops.ts";
import { ToolCalls } from "./tool-calls.ts";

/** The facts that a chat stream shows. */
export interface ChatFacts {
  /** Id of the completion. */
  id: string;
  modelId: string;
  /** Seconds since the epoch, for an upstream that reports no time. */
  nowS: () => number;
  /** Did the caller ask for the usage chunk? */
  withUsage: boolean;
  /** Sequences at which the text ends, where the upstream does not know them. */
  stops?: readonly string[];
}

const nothing = Buffer.alloc(0);
/** Types of items whose text is sent, and counted as it is sent. */
const shownTypes: ReadonlySet<JsonValue | undefined> = new Set([
  "message",
  "function_call",
  "custom_tool_call",
]);

/** Turns a Responses stream into chat completion chunks. Text that was not streamed is taken from its `done` event. */
export class ChatFromResponses extends TranslatedReader {
  readonly #facts: ChatFacts;
  readonly #calls = new ToolCalls();
  /** Characters of each text part that came. */
  readonly #sent = new Map<string, number>();
  /** Characters of each item's reasoning that were sent or counted. */
  readonly #thought = new Map<JsonValue | undefined, number>();
  /** The part to which the last shown reasoning belongs. */
  #thinking: string | undefined;
  readonly #states = new KeptStates();
  readonly #stops: StopSearch;
  /** Log probabilities of tokens whose text is held back. */
  #logprobs: JsonValue[] = [];
  #writer: ChunkWriter | undefined;

  constructor(facts: ChatFacts) {
    super();
    this.#facts = facts;
    this.#stops = new StopSearch(facts.stops ?? []);
  }

  protected get hasBegun(): boolean {
    return this.#writer !== undefined;
  }

  protected body(event: JsonObject, response: JsonObject): void {
    const writer = this.#begin(response.created_at);
    switch (event.type) {
      case "response.output_text.delta":
        this.#say(writer, event, textOfDeltaEvent(event), event.logprobs);
        break;
      case "response.refusal.delta":
        this.#refusal(writer, event, textOfDeltaEvent(event));
        break;
      case "response.output_text.done":
        this.#say(writer, event, restOf(event.text, this.#sent.get(partKey(event))));
        break;
      case "response.refusal.done":
        this.#refusal(writer, event, restOf(event.refusal, this.#sent.get(partKey(event))));
        break;
      case "response.reasoning_text.delta":
      case "response.reasoning_summary_text.delta":
        this.#think(writer, event, textOfDeltaEvent(event));
        break;
      case "response.output_text.annotation.added":
        for (const annotation of annotationOf(event.annotation)) {
          this.#push(writer.delta({ annotations: [annotation] }));
        }
        break;
      default:
        if (!this.#call(writer, event)) this.#silent(event);
        if (event.type === "response.output_item.done") {
          this.#reasoned(writer, event, event.item);
          this.#state(writer, [event.item ?? null]);
        }
    }
  }

  #call(writer: ChunkWriter, event: JsonObject): boolean {
    const delta = this.#calls.take(event);
    if (!delta) return false;
    this.#release(writer);
    if (delta.chunk) this.#push(writer.delta({ tool_calls: [delta.chunk] }), delta.text);
    return true;
  }

  /** Text that has no place in a chat stream is counted as output too. */
  #silent(event: JsonObject): void {
    const text = textOfDeltaEvent(event);
    if (text !== "") this.#count(event.output_index, text);
  }

  #count(item: JsonValue | undefined, text: string): void {
    this.#thought.set(item, (this.#thought.get(item) ?? 0) + text.length);
    this.#push(nothing, text);
  }

  #say(
    writer: ChunkWriter,
    event: JsonObject,
    text: JsonValue | undefined,
    logprobs?: JsonValue,
  ): void {
    if (!isText(text)) return;
    note(this.#sent, partKey(event), text);
    if (this.isStopFound) {
      this.#push(nothing, text);
      return;
    }
    if (Array.isArray(logprobs)) this.#logprobs.push(...logprobs);
    this.#show(writer, this.#stops.take(text));
    // The upstream does not know the stop sequences and goes on. Its reasoning is known only from its usage.
    this.isStopFound = this.#stops.isFound;
  }

  /** Sends the text that was held back. It is clear now that it begins no stop sequence. */
  #release(writer: ChunkWriter): void {
    this.#show(writer, this.#stops.rest());
  }

  #show(writer: ChunkWriter, content: string): void {
    if (content === "") return;
    const logprobs = this.#logprobsOf(content.length);
    const shown = logprobs.length > 0 ? { content: logprobs, refusal: null } : null;
    this.#push(writer.delta({ content }, shown), content);
  }

  /** Log probabilities of the tokens within this many characters. */
  #logprobsOf(characters: number): JsonValue[] {
    const all = this.#logprobs;
    let left = characters;
    const isBeyond = (token: JsonValue) => {
      const text = isJsonObject(token) && typeof token.token === "string" ? token.token : "";
      left -= text.length;
      return left < 0;
    };
    const end = this.#facts.stops?.length ? all.findIndex(isBeyond) : -1;
    this.#logprobs = end === -1 ? [] : all.slice(end);
    return end === -1 ? all : all.slice(0, end);
  }

  #refusal(writer: ChunkWriter, event: JsonObject, refusal: JsonValue | undefined): void {
    if (!isText(refusal)) return;
    note(this.#sent, partKey(event), refusal);
    this.#push(writer.delta({ refusal }), refusal);
  }

  /** Shows reasoning and its summaries. The parts are paragraphs. */
  #think(writer: ChunkWriter, event: JsonObject, text: JsonValue | undefined): void {
    if (!isText(text)) return;
    const { output_index: item } = event;
    this.#thought.set(item, (this.#thought.get(item) ?? 0) + text.length);
    const part = `${item}/${event.content_index}/${event.summary_index}`;
    const isNext = this.#thinking !== undefined && this.#thinking !== part;
    this.#thinking = part;
    this.#push(writer.delta({ reasoning_content: (isNext ? "\n\n" : "") + text }), text);
  }

  /** Handles the text of an item that is beyond its deltas. Reasoning is shown. Other text is only counted as output. */
  #reasoned(writer: ChunkWriter, event: JsonObject, item: JsonValue | undefined): void {
    if (!isJsonObject(item) || shownTypes.has(item.type)) return;
    const rest = textOfItem(item).slice(this.#thought.get(event.output_index) ?? 0);
    if (item.type === "reasoning") this.#think(writer, event, rest);
    else if (rest !== "") this.#count(event.output_index, rest);
  }

  /** Sends the state that the upstream wants back in the next turn, except that of calls. The last event's repetition is not sent. */
  #state(writer: ChunkWriter, items: readonly JsonValue[]): void {
    const state = this.#states.take(items.filter(isJsonObject));
    if (!state) return;
    this.#push(writer.delta(state));
    const opaque = opaqueIn(state.reasoning_details);
    const last = this.out.at(-1);
    if (last && opaque.length > 0) last.opaque = opaque;
  }

  protected finish(response: JsonObject): void {
    const writer = this.#begin(response.created_at);
    const output = Array.isArray(response.output) ? response.output : [];
    for (const [place, item] of this.#placesOf(output)) {
      this.#reasoned(writer, place === undefined ? {} : { output_index: place }, item);
    }
    this.#showOutput(writer, output);
    this.#state(writer, output);
    this.#release(writer);
    const reason = finishReasonOf(response, this.#calls.count > 0);
    const finish = writer.finish(this.isStopFound ? "stop" : reason);
    const ending = response.status === "incomplete" ? "incomplete" : "completed";
    const shown = this.#facts.withUsage
      ? chatUsageOf(this.note.objectIn(responseNames))
      : undefined;
    if (shown) this.out.push({ frame: finish, text: "" });
    this.terminal(shown ? writer.usage(shown) : finish, ending);
  }

  /**
   * The items other than texts and calls, each under the index of its deltas. The upstream's own indexes may begin anywhere or be left
   * out. Then the last event has the items again in their order.
   */
  #placesOf(output: readonly JsonValue[]): [place: JsonValue | undefined, item: JsonValue][] {
    const others = [...output.entries()].filter(
      ([, item]) => isJsonObject(item) && !shownTypes.has(item.type),
    );
    const places = new Set<JsonValue | undefined>(others.map(([index]) => index));
    const elsewhere = [...this.#thought.keys()].filter((place) => !places.has(place));
    return others.map(([index, item]) => {
      const isElsewhere = elsewhere.length > 0 && !this.#thought.has(index);
      return [isElsewhere ? elsewhere.shift() : index, item];
    });
  }

  /** Shows everything that is in the upstream's last event alone: all texts where it streamed none, and calls. */
  #showOutput(writer: ChunkWriter, output: readonly JsonValue[]): void {
    const hasSaid = this.#sent.size > 0;
    for (const [index, item] of output.entries()) {
      if (!isJsonObject(item) || item.type !== "message" || hasSaid) continue;
      const parts = Array.isArray(item.content) ? item.content.filter(isJsonObject) : [];
      for (const part of parts) {
        this.#say(writer, { output_index: index }, part.text);
        this.#refusal(writer, { output_index: index }, part.refusal);
      }
    }
    for (const item of this.#calls.missingOf(output)) {
      // An index of its own, because the upstream may have streamed another item under this place.
      const index = `last/${this.#calls.count}`;
      this.#call(writer, { type: "response.output_item.added", output_index: index, item });
    }
  }

  protected fail(reason: Reason, isByUs = false): void {
    this.#release(this.#begin(undefined));
    this.terminal(errorChunk(reason), "failed", isByUs);
  }

  /** The writer. The chunk with the role is sent first. */
  #begin(createdAt: JsonValue | undefined): ChunkWriter {
    if (this.#writer) return this.#writer;
    const { id, modelId: model, withUsage } = this.#facts;
    const created = typeof createdAt === "number" ? createdAt : this.#facts.nowS();
    this.#writer = new ChunkWriter({ id, created, model, withUsage });
    this.#push(this.#writer.delta({ role: "assistant", content: "", refusal: null }));
    return this.#writer;
  }

  /** Sends a frame. Nothing more is shown behind a stop sequence, but it is counted as output too. */
  #push(frame: Buffer, text = ""): void {
    this.out.push({ frame: this.isStopFound ? nothing : frame, text });
  }
}

function partKey(event: JsonObject): string {
  return `${event.output_index}/${event.content_index}`;
}

function note(sent: Map<string, number>, key: string, text: string): void {
  sent.set(key, (sent.get(key) ?? 0) + text.length);
}

/** The end of a part's whole text that its deltas left out. */
function restOf(whole: JsonValue | undefined, sent = 0): string {
  return typeof whole === "string" ? whole.slice(sent) : "";
}
