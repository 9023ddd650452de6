// Reads answers of embeddings and transcriptions, of which every part is looked at and written again. Large ones are read in a
// thread.

import type { StopSignal } from "#kit/base/stop.ts";
import { anyObjectIn } from "../call.ts";
import { readEmbeddings, type VectorFormat } from "./embeddings.ts";
import { UpstreamFailure } from "./failure.ts";
import type { JsonAnswer } from "./port.ts";
import { readTranscription, type SoundUnits } from "./transcription.ts";

/** Facts for reading an answer all of whose parts are looked at and written again. No text of it is passed on unchanged. */
export type PlainRequest =
  | { operation: "embeddings"; modelId: string; inputs: number; format: VectorFormat }
  | ({ operation: "transcriptions" } & SoundUnits);

/** Such an answer as callers see it. Without `answer` the reply was no answer, and only its usage counts. */
export type PlainAnswer =
  | { answer: Omit<JsonAnswer, "kind" | "upstream"> }
  | { answer?: never; usage: JsonAnswer["usage"] };

/** Reads such an answer. A large one is read in a thread, which gets its bytes: vectors as numbers are tens of megabytes. */
export type ReadPlain = (
  bytes: Uint8Array,
  request: PlainRequest,
  asking: { accountId: string; signal: StopSignal },
) => Promise<PlainAnswer>;

/** {@link ReadPlain} in the calling thread. */
export function readPlain(bytes: Uint8Array, request: PlainRequest): PlainAnswer {
  // Parsed at any depth. Only known fields are written again, and none of them nests.
  const found = anyObjectIn(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length));
  if (!found) return { usage: undefined };
  try {
    const { object, ...answer } =
      request.operation === "embeddings"
        ? readEmbeddings(found, request)
        : readTranscription(found, request);
    return { answer: { ...answer, body: Buffer.from(JSON.stringify(object)) } };
  } catch (error) {
    if (!(error instanceof UpstreamFailure)) throw error;
    return { usage: error.usage };
  }
}
