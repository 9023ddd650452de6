import { soundTypes } from "#kit/sound/formats.ts";
import { maxDownloadNameLength, maxFileNameLength } from "./limits.ts";

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

/**
 * The name that a caller gave a file, as it is kept and shown: without folders, control characters, direction marks and
 * halves of characters, at most 255 code points; "upload" where nothing is left.
 */
export function keptName(name: string): string {
  const base = name.toWellFormed().split(/[/\\]/).at(-1) ?? "";
  const clean = base.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\ufffd]/gu, "").trim();
  const cut = Array.from(clean).slice(0, maxFileNameLength).join("");
  return cut === "" || cut === "." || cut === ".." ? "upload" : cut;
}

/**
 * A name for Content-Disposition: [A-Za-z0-9._-] alone, not beginning with a dot, and with a suffix that fits the verified
 * media type, also where the caller's name has another.
 */
export function downloadName(name: string, mimeType: string): string {
  const accepted = suffixes[mimeType] ?? ["bin"];
  const safe = name.replace(/[^A-Za-z0-9._-]+/g, "_").replace(/^[._]+/, "");
  const dot = safe.lastIndexOf(".");
  const suffix = dot > 0 ? safe.slice(dot + 1).toLowerCase() : "";
  const fits = accepted.includes(suffix);
  const stem = (fits ? safe.slice(0, dot) : safe).slice(0, maxDownloadNameLength) || "file";
  return `${stem}.${fits ? suffix : accepted[0]}`;
}
