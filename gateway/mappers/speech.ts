import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { GenerateSpeechResponse } from "#proto/genmesh/media/v1/media_service_pb.ts";

/** The public document of spoken text; `baseUrl` ends in `/v1`. */
export function toSpeechDocument(speech: GenerateSpeechResponse, baseUrl: string) {
  const { audio } = speech;
  if (!audio) throw new Error("speech without audio");
  return {
    id: speech.speechId,
    object: "speech",
    created_at: speech.createTime ? Math.floor(timestampMs(speech.createTime) / 1_000) : 0,
    model: speech.model,
    audio: {
      id: audio.fileId,
      url: `${baseUrl}/speech/generations/${speech.speechId}/files/${audio.fileId}`,
      mimeType: audio.mimeType,
      sizeBytes: Number(audio.sizeBytes),
      durationSeconds: audio.durationSeconds,
    },
    usage: {
      characters: Number(speech.characters),
      costUsdMicros: Number(speech.costUsdMicros),
    },
  };
}
