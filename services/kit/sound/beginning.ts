// Checks the first bytes of audio before they are passed on to a listener. `seconds.ts` measures it when all has come.

import { isUtf8 } from "node:buffer";
import type { SoundFormat } from "./formats.ts";
import { mp3FrameAt } from "./mp3-frame.ts";

/** Bytes that tell whether audio begins: the longest head, that of a WAV. */
export const beginningBytes = 12;

/**
 * Can audio of a format begin with these bytes? For audio that is passed on before all of it is there. The whole is measured later. So
 * an upstream's page of text, or another format, is found before its first byte goes on. At least {@link beginningBytes} are needed.
 */
export function beginsAs(bytes: Uint8Array, format: SoundFormat): boolean {
  const sound = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return beginnings[format](sound);
}

const beginnings: Readonly<Record<SoundFormat, (sound: Buffer) => boolean>> = {
  mp3: (sound) => nameOf(sound, 3) === "ID3" || mp3FrameAt(sound, 0) !== undefined,
  opus: (sound) => nameOf(sound, 4) === "OggS",
  aac: (sound) => nameOf(sound, 3) === "ID3" || (sound.readUInt16BE(0) & 0xfff6) === 0xfff0,
  flac: (sound) => nameOf(sound, 4) === "fLaC",
  wav: (sound) => nameOf(sound, 4) === "RIFF" && sound.toString("latin1", 8, 12) === "WAVE",
  pcm: (sound) => !heads.has(nameOf(sound, 4)) && nameOf(sound, 3) !== "ID3" && !isPage(sound),
};

/** Names at the beginning of a file with a head. Samples do not begin so. */
export const heads: ReadonlySet<string> = new Set(["RIFF", "OggS", "fLaC"]);

/** JSON, HTML or XML. Samples may happen to be text for a few bytes, but hardly behind one of these characters. */
function isPage(sound: Buffer): boolean {
  const head = sound.subarray(0, beginningBytes);
  return "{[<".includes(nameOf(head, 1)) && isUtf8(head);
}

function nameOf(sound: Buffer, length: number): string {
  return sound.toString("latin1", 0, length);
}
