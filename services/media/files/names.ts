import { plainFileName } from "#common/words/file-name.ts";
import { soundTypes } from "#kit/sound/formats.ts";
import { maxDownloadStemBytes } from "./limits.ts";

/** Suffixes of the media types that are stored anywhere; the first is the one that is added. */
const suffixes: Readonly<Record<string, readonly string[]>> = {
  "image/png": ["png"],
  "image/jpeg": ["jpg", "jpeg"],
  "image/webp": ["webp"],
  "video/mp4": ["mp4"],
  [soundTypes.mp3]: ["mp3"],
  // Opus comes in Ogg: players go by either name.
  [soundTypes.opus]: ["opus", "ogg"],
  [soundTypes.aac]: ["aac"],
  [soundTypes.flac]: ["flac"],
  [soundTypes.wav]: ["wav"],
  [soundTypes.pcm]: ["pcm"],
};

/** The usual suffix of a media type, without a dot. */
export function suffixOf(mimeType: string): string {
  return suffixes[mimeType]?.[0] ?? "bin";
}

/** The name that a caller gave a file, as it is kept and shown; "upload" where nothing of it can be. */
export function keptName(name: string): string {
  return plainFileName(name) || "upload";
}

/**
 * A name to download a file by: the kept one, not beginning with a dot, cut to what file systems take, and with a suffix that fits the
 * verified media type, also where the caller's name has another.
 */
export function downloadName(name: string, mimeType: string): string {
  const accepted = suffixes[mimeType] ?? ["bin"];
  const shown = plainFileName(name).replace(/^[.\s]+/, "");
  const dot = shown.lastIndexOf(".");
  const suffix = dot > 0 ? shown.slice(dot + 1).toLowerCase() : "";
  const fits = accepted.includes(suffix);
  const stem = startOf(fits ? shown.slice(0, dot) : shown, maxDownloadStemBytes) || "file";
  return `${stem}.${fits ? suffix : accepted[0]}`;
}

/** As many characters of a text as fit into so many bytes of UTF-8. */
function startOf(text: string, bytes: number): string {
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(bytes));
  return text.slice(0, read);
}
