import { endOfId3 } from "#kit/sound/id3.ts";
import { takeMp3 } from "../sound/mp3.ts";
import { takeWav } from "../sound/wav.ts";

/** A sound of a message, as it goes upstream: what was counted of its bytes, and nothing else. */
export interface MeasuredSound {
  format: "wav" | "mp3";
  seconds: number;
  bytes: Uint8Array<ArrayBuffer>;
}

/** Takes a WAV or an MP3, which is what messages may hold; undefined for anything else. Uses up the bytes. */
export function measureSound(bytes: Buffer<ArrayBuffer>): MeasuredSound | undefined {
  const isWav = bytes.toString("latin1", 0, 4) === "RIFF";
  const sound = isWav ? takeWav(bytes) : takeMp3(bytes.subarray(endOfId3(bytes)));
  if (!sound || !(sound.seconds > 0)) return undefined;
  return { format: isWav ? "wav" : "mp3", seconds: sound.seconds, bytes: sound.bytes };
}
