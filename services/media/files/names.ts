// Makes names of files: the one that is kept, and the one under which a file is downloaded.

import { plainFileName } from "#common/words/file-name.ts";
import { soundTypes } from "#kit/sound/formats.ts";
import { maxDownloadStemBytes } from "./limits.ts";

/** Suffixes of all stored media types. The first one is added. */
const suffixes: Readonly<Record<string, readonly string[]>> = {
  "image/png": ["png"],
  "image/jpeg": ["jpg", "jpeg"],
  "image/webp": ["webp"],
  "video/mp4": ["mp4"],
  [soundTypes.mp3]: ["mp3"],
  // Opus comes in Ogg, and players know both names.
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

/** A caller's name for a file, in the form that is kept and shown. "upload" where no character of it can be kept. */
export function keptName(name: string): string {
  return plainFileName(name) || "upload";
}

/**
 * A name for downloading a file. It is the kept one without a dot at the beginning, cut to the length that file systems take. Its
 * suffix fits the verified media type, even where the caller's name has another.
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

/** As many characters of a text as fit into `bytes` bytes of UTF-8. */
function startOf(text: string, bytes: number): string {
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(bytes));
  return text.slice(0, read);
}
