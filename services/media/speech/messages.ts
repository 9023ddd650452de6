// Makes the messages of a speech: the stored one, and the parts of one that is heard.

import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { soundTypes } from "#kit/sound/formats.ts";
import type { StreamSpeechResponseSchema } from "#proto/genmesh/media/v1/media_service_pb.ts";
import type { Heard, Spoken } from "./service.ts";

/** A stored speech. */
export function toAnswer({ record, replayed }: Omit<Spoken, "asEvents">) {
  const { speechId, fileId, openedAt, modelId, characters, amount, audio } = record;
  if (!audio) throw new Error("an answered speech without its sound");
  const { format, sha256, durationSeconds } = audio;
  const mimeType = soundTypes[format];
  return {
    speechId,
    createTime: timestampFromMs(openedAt),
    model: modelId,
    audio: { fileId, mimeType, sizeBytes: BigInt(audio.sizeBytes), sha256, durationSeconds },
    characters: BigInt(characters),
    costUsdMicros: amount,
    replayed,
  };
}

type Part = MessageInitShape<typeof StreamSpeechResponseSchema>;

/** The parts of a speech that is heard: what was begun, the audio as it comes, the stored speech. */
export async function* toParts(spoken: AsyncGenerator<Heard, Spoken>): AsyncGenerator<Part> {
  await using speaking = spoken;
  let hasBegun = false;
  const begun = (facts: Pick<Heard, "format" | "amount" | "replayed" | "asEvents">): Part => {
    hasBegun = true;
    const { format, amount, replayed, asEvents } = facts;
    const value = { mimeType: soundTypes[format], costUsdMicros: amount, replayed, asEvents };
    return { part: { case: "begun", value } };
  };
  for (;;) {
    const { done, value } = await speaking.next();
    if (!done) {
      if (!hasBegun) yield begun(value);
      yield { part: { case: "sound", value: value.piece } };
      continue;
    }
    const { record, replayed, asEvents } = value;
    const { audio, amount } = record;
    if (!audio) throw new Error("an answered speech without its sound");
    if (!hasBegun) yield begun({ format: audio.format, amount, replayed, asEvents });
    yield { part: { case: "stored", value: toAnswer(value) } };
    return;
  }
}
