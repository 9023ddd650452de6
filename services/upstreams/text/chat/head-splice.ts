// Saves `native.ts` the writing of each chunk again, where only the id and the model's name differ.

import type { JsonObject } from "#kit/base/json.ts";
import { dataOf, type SseEvent } from "#kit/upstream/sse.ts";
import type { ChatFacts } from "./from-responses.ts";

const dataField = Buffer.from("data: ");
const frameEnd = "\n\n";

/** The facts of a chunk that genmesh sets. */
type Head = Pick<ChatFacts, "id" | "modelId">;

/**
 * Puts genmesh's id and the public model id into chunks without serializing them again. The chunks of one stream all begin with the
 * same bytes, and these hold both ids. So this beginning is learned once and exchanged.
 */
export class HeadSplice {
  readonly #head: Head;
  /** The upstream's id and model. */
  #theirs: JsonObject = {};
  /** The learned beginning, and the beginning of a frame that replaces it. */
  #from: Buffer | undefined;
  #to: Buffer | undefined;
  #canLearn = true;

  constructor(head: Head) {
    this.#head = head;
  }

  /** The chunk's frame. Undefined where it must be serialized again. `chunk` was parsed from `source`. */
  frame(chunk: JsonObject, source: SseEvent): Uint8Array | undefined {
    if (!this.#from && this.#canLearn) this.#learn(chunk, dataOf(source));
    if (!this.#from || !this.#to || !source.frame || source.name !== "") return undefined;
    const { bytes, start, end } = source;
    const rest = start + this.#from.length;
    const isSame = rest < end && bytes.compare(this.#from, 0, this.#from.length, start, rest) === 0;
    // Of a field that stands twice, the last one counts.
    if (!isSame || chunk.id !== this.#theirs.id || chunk.model !== this.#theirs.model)
      return undefined;
    const frame = Buffer.allocUnsafe(this.#to.length + end - rest + frameEnd.length);
    frame.set(this.#to);
    bytes.copy(frame, this.#to.length, rest, end);
    frame.write(frameEnd, frame.length - frameEnd.length, "latin1");
    return frame;
  }

  #isOurs({ id, model }: JsonObject): boolean {
    return id === this.#head.id && model === this.#head.modelId;
  }

  #learn(chunk: JsonObject, data: Buffer): void {
    this.#canLearn = false;
    const { id, modelId } = this.#head;
    const places = [placeOf("id", chunk, data), placeOf("model", chunk, data)];
    const [ofId, ofModel] = places;
    if (!ofId || !ofModel) return;
    const values = [
      { ...ofId, value: JSON.stringify(id) },
      { ...ofModel, value: JSON.stringify(modelId) },
    ].sort((one, other) => one.begin - other.begin);
    const parts: Buffer[] = [];
    let at = 0;
    for (const { begin, end, value } of values) {
      parts.push(data.subarray(at, begin), Buffer.from(value));
      at = end;
    }
    const to = Buffer.concat(parts);
    if (!this.#isRight(Buffer.concat([to, data.subarray(at)]))) return;
    this.#theirs = { id: chunk.id ?? null, model: chunk.model ?? null };
    this.#from = Buffer.from(data.subarray(0, at));
    this.#to = Buffer.concat([dataField, to]);
  }

  /**
   * Does the new chunk have the right head? A learned place could have been that of a nested field, so the new chunk is parsed as a
   * proof.
   */
  #isRight(spliced: Buffer): boolean {
    try {
      return this.#isOurs(JSON.parse(spliced.toString()));
    } catch {
      return false;
    }
  }
}

/** The place of a field's value in a chunk's bytes: the first place that looks like it. */
function placeOf(
  name: string,
  chunk: JsonObject,
  data: Buffer,
): { begin: number; end: number } | undefined {
  if (typeof chunk[name] !== "string") return undefined;
  const value = JSON.stringify(chunk[name]);
  for (const field of [`"${name}":${value}`, `"${name}": ${value}`]) {
    const at = data.indexOf(field);
    if (at === -1) continue;
    const end = at + Buffer.byteLength(field);
    return { begin: end - Buffer.byteLength(value), end };
  }
  return undefined;
}
