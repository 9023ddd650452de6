import type { JsonObject } from "#kit/base/json.ts";
import type { SseEvent } from "#kit/upstream/sse.ts";
import type { ChatFacts } from "./from-responses.ts";

const dataField = Buffer.from("data: ");
const frameEnd = Buffer.from("\n\n");

/** What of a chunk is ours. */
type Head = Pick<ChatFacts, "id" | "modelId">;

/**
 * Puts our id and the public model id into chunks without writing them anew: the chunks of one stream begin with the same bytes
 * up to and with both, so that beginning is learned once and exchanged.
 */
export class HeadSplice {
  readonly #head: Head;
  /** What upstream calls them. */
  #theirs: JsonObject = {};
  /** The learned beginning, and the whole beginning of a frame in its place. */
  #from: Buffer | undefined;
  #to: Buffer | undefined;
  #canLearn = true;

  constructor(head: Head) {
    this.#head = head;
  }

  /** The chunk's frame, or undefined where it must be written anew. `chunk` is what `source` parses to. */
  frame(chunk: JsonObject, source: SseEvent): Uint8Array | undefined {
    if (!this.#from && this.#canLearn) this.#learn(chunk, source.data);
    const { data, frame } = source;
    if (!this.#from || !this.#to || !frame || source.name !== "") return undefined;
    const isSame = data.length > this.#from.length && data.indexOf(this.#from) === 0;
    // One that names them twice is read by the last.
    if (!isSame || chunk.id !== this.#theirs.id || chunk.model !== this.#theirs.model)
      return undefined;
    return Buffer.concat([this.#to, data.subarray(this.#from.length), frameEnd]);
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

  /** One could have been the field of something within: the proof is that the chunk then reads as it should. */
  #isRight(spliced: Buffer): boolean {
    try {
      return this.#isOurs(JSON.parse(spliced.toString()));
    } catch {
      return false;
    }
  }
}

/** Where the value of a chunk's field stands in its bytes: first of all that look like it. */
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
