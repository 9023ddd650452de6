import { anyObjectIn } from "../call.ts";
import { readEmbeddings, type VectorFormat } from "./embeddings.ts";
import { UpstreamFailure } from "./failure.ts";
import type { JsonAnswer } from "./port.ts";
import { readTranscription, type SoundUnits } from "./transcription.ts";

/** What an answer is read by whose parts are all looked at and written anew: none of them is text that goes through as it came. */
export type PlainRequest =
  | { operation: "embeddings"; modelId: string; inputs: number; format: VectorFormat }
  | ({ operation: "transcriptions" } & SoundUnits);

/** Such an answer as we show it; without one, it was none, and its usage is all that counts of it. */
export type PlainAnswer =
  | { answer: Omit<JsonAnswer, "kind" | "upstream"> }
  | { answer?: never; usage: JsonAnswer["usage"] };

/** Reads such an answer, in a thread where it is large, to which its bytes go: vectors as numbers are tens of megabytes. */
export type ReadPlain = (
  bytes: Uint8Array,
  request: PlainRequest,
  asking: { accountId: string; signal: AbortSignal },
) => Promise<PlainAnswer>;

/** {@link ReadPlain}, at once. */
export function readPlain(bytes: Uint8Array, request: PlainRequest): PlainAnswer {
  // However deep: only fields that we know are written again, none of which nests.
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
