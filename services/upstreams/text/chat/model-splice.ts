import type { JsonObject } from "#kit/json.ts";
import type { SseEvent } from "#kit/upstream/sse.ts";

const dataField = Buffer.from("data: ");
const frameEnd = Buffer.from("\n\n");

/**
 * Puts the public model id into chunks without writing them anew: the chunks of one stream begin with the same bytes
 * up to and with `model`, so that beginning is learned once and exchanged.
 */
export class ModelSplice {
  readonly #modelId: string;
  /** The learned beginning, and the whole beginning of a frame in its place. */
  #from: Buffer | undefined;
  #to: Buffer | undefined;
  #canLearn = true;

  constructor(modelId: string) {
    this.#modelId = modelId;
  }

  /** The chunk's frame, or undefined where it must be written anew. `chunk` is what `source` parses to. */
  frame(chunk: JsonObject, source: SseEvent): Uint8Array | undefined {
    if (chunk.model === this.#modelId) return source.name === "" ? source.frame : undefined;
    if (!this.#from && this.#canLearn) this.#learn(chunk, source.data);
    const { data, frame } = source;
    if (!this.#from || !this.#to || !frame || source.name !== "") return undefined;
    const isSame = data.length > this.#from.length && data.indexOf(this.#from) === 0;
    if (!isSame) return undefined;
    return Buffer.concat([this.#to, data.subarray(this.#from.length), frameEnd]);
  }

  #learn(chunk: JsonObject, data: Buffer): void {
    this.#canLearn = false;
    if (typeof chunk.model !== "string") return;
    const value = JSON.stringify(chunk.model);
    for (const field of [`"model":${value}`, `"model": ${value}`]) {
      const at = data.indexOf(field);
      if (at === -1) continue;
      const end = at + Buffer.byteLength(field);
      const before = data.subarray(0, end - Buffer.byteLength(value));
      const to = Buffer.concat([dataField, before, Buffer.from(JSON.stringify(this.#modelId))]);
      if (!this.#isRight(Buffer.concat([to.subarray(dataField.length), data.subarray(end)])))
        return;
      this.#from = Buffer.from(data.subarray(0, end));
      this.#to = to;
      return;
    }
  }

  /** It could have been the field of something within: the proof is that the chunk then reads as it should. */
  #isRight(spliced: Buffer): boolean {
    try {
      return JSON.parse(spliced.toString()).model === this.#modelId;
    } catch {
      return false;
    }
  }
}
