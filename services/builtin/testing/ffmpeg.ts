// Reads made videos and music with ffmpeg, where it is installed. Only tests import it.

import { execFileSync, spawnSync } from "node:child_process";

/** True where ffmpeg and ffprobe are installed. Reports it once where they are not. */
export function haveFfmpeg(): boolean {
  const missing = ["ffmpeg", "ffprobe"].filter(
    (name) => spawnSync(name, ["-version"]).error !== undefined,
  );
  if (missing.length > 0) {
    process.stderr.write(`skipped: decoding the files again needs ${missing.join(" and ")}\n`);
  }
  return missing.length === 0;
}

/** Decodes the frames of a video from a second on, after a jump there, as tightly packed RGB. */
export function decodeFrames(
  file: string,
  width: number,
  height: number,
  fromSeconds = 0,
): Uint8Array[] {
  const jump = fromSeconds === 0 ? [] : ["-ss", String(fromSeconds)];
  const args = ["-v", "error", ...jump, "-i", file, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"];
  const bytes = execFileSync("ffmpeg", args, { maxBuffer: 2 ** 30 });
  const size = width * height * 3;
  return Array.from({ length: bytes.length / size }, (_, index) =>
    bytes.subarray(index * size, (index + 1) * size),
  );
}

/** Everything that ffprobe finds in a file's streams. */
export function probeStreams(file: string): Record<string, unknown>[] {
  const args = ["-v", "error", "-show_streams", "-of", "json", file];
  return JSON.parse(execFileSync("ffprobe", args, { encoding: "utf8" })).streams;
}

/** Mean difference of two equally long images, 0 to 255. */
export function meanDifference(one: Uint8Array, other: Uint8Array): number {
  let sum = 0;
  for (let i = 0; i < one.length; i++) sum += Math.abs((one[i] ?? 0) - (other[i] ?? 0));
  return sum / one.length;
}
