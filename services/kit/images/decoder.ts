/**
 * The program of a decoder process, started by `decoder-process.ts` with its memory limit in MiB
 * as the argument. It reads one message, answers it and waits for the next.
 */
import { writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { decodeImage, prepareDecoding } from "./decode.ts";
import { ImageError } from "./errors.ts";
import { decoderWeighingIntervalMs } from "./limits.ts";
import type { DecodeRequest, DecoderMessage } from "./protocol.ts";

const memoryLimitBytes = Number(process.argv[2]) * 1024 * 1024;

// A decode that runs in a native thread would hold up any softer end.
function die(): void {
  process.kill(process.pid, "SIGKILL");
}

function tell(message: DecoderMessage, then?: () => void): void {
  process.send?.(message, () => then?.());
}

/** Native memory has no limit of its own: above ours the process says so and ends. */
function weigh(): void {
  if (process.memoryUsage.rss() > memoryLimitBytes) tell({ type: "exhausted" }, die);
}

async function readSource({ source, maxBytes }: DecodeRequest): Promise<Uint8Array> {
  if (typeof source !== "string") return source;
  await using file = await open(source);
  const { size } = await file.stat();
  if (size > maxBytes) throw new ImageError("too_large");
  return file.readFile();
}

async function answer(request: DecodeRequest): Promise<DecoderMessage> {
  const watch = setInterval(weigh, decoderWeighingIntervalMs);
  try {
    return { type: "decoded", image: await decodeImage(await readSource(request), request) };
  } catch (error) {
    return { type: "refused", kind: error instanceof ImageError ? error.kind : "unavailable" };
  } finally {
    clearInterval(watch);
  }
}

// The one that started it is gone, and nobody waits for an answer.
process.on("disconnect", die);
// A terminal's Ctrl-C reaches the whole group; the one that drains still needs its decoders.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => {});
try {
  // Where memory runs out all the same, Linux shall take this process and not its parent.
  writeFileSync("/proc/self/oom_score_adj", "1000");
} catch {
  // Another system, or not allowed: the limit above still holds.
}
prepareDecoding();
process.on(
  "message",
  (request: DecodeRequest) => void answer(request).then((reply) => tell(reply)),
);
tell({ type: "ready" });
