// The program of a decoder process, started by `decoder-process.ts` with its memory limit in MiB as the argument. It reads one
// message, answers it and waits for the next.

import { writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import sharp, { type Metadata, type Sharp, type SharpOptions } from "sharp";
import { cutToStrip } from "./jpeg.ts";
import { decoderWeighingIntervalMs, shrunkFromPixels } from "./limits.ts";
import { decodePng } from "./png.ts";
import {
  type DecodedImage,
  type DecodeRequest,
  type DecoderMessage,
  ImageError,
  type ImageRules,
} from "./protocol.ts";
import { checkHeader, hasEnd } from "./sniff.ts";

const memoryLimitBytes = Number(process.argv[2]) * 1024 * 1024;

// Kills the process: a decode that runs in a native thread would delay any softer end.
function die(): void {
  process.kill(process.pid, "SIGKILL");
}

function tell(message: DecoderMessage, then?: () => void): void {
  process.send?.(message, () => then?.());
}

/** Native memory has no limit of its own. Above our limit the process reports that and ends. */
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

// The process that started this one is gone, so nothing waits for an answer.
process.on("disconnect", die);
// A terminal's Ctrl-C reaches the whole group. The process that drains still needs its decoders.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => {});
try {
  // If memory still runs out, Linux should end this process and not its parent.
  writeFileSync("/proc/self/oom_score_adj", "1000");
} catch {
  // Another system, or no permission. The limit above still holds.
}
prepareDecoding();
process.on(
  "message",
  (request: DecodeRequest) => void answer(request).then((reply) => tell(reply)),
);
tell({ type: "ready" });

/** Leaves libvips with two loaders, one thread and no cache. */
function prepareDecoding(): void {
  sharp.cache(false);
  sharp.concurrency(1);
  sharp.block({ operation: ["VipsForeignLoad"] });
  sharp.unblock({
    operation: ["VipsForeignLoadJpeg", "VipsForeignLoadWebp"],
  });
}

/**
 * Decodes an image to its last pixel and answers its facts. The format is the one that the decoder reads: names and declared types do
 * not matter. Bytes after the end of the image are allowed (cameras put previews and videos there). Of an animation the first frame is
 * decoded. Throws `ImageError`.
 */
async function decodeImage(bytes: Uint8Array, rules: ImageRules): Promise<DecodedImage> {
  const format = checkHeader(bytes, rules);
  if (!hasEnd(bytes, format)) throw new ImageError("corrupt");
  const image = format === "png" ? await decodePng(bytes) : await decodeByVips(bytes, rules);
  if (image.format !== format) throw new ImageError("unsupported_format");
  if (image.width * image.height > rules.maxPixels) throw new ImageError("too_many_pixels");
  return image;
}

async function decodeByVips(bytes: Uint8Array, rules: ImageRules): Promise<DecodedImage> {
  const image = () => sharp(bytes, optionsOf(rules));
  const metadata = await orRefuse<Metadata>(image().metadata());
  const { format, width, height, pages = 1, orientation = 1, autoOrient } = metadata;
  if (format !== "jpeg" && format !== "webp") throw new ImageError("unsupported_format");
  const rows = format === "jpeg" ? cutToStrip(bytes, { width, height }) : height;
  const inks = metadata.space === "cmyk" ? asCmyk(image()) : image();
  await readPixels(shrunk(inks, width, rows));
  // Broken files hold other values. Every viewer shows those images as they are stored.
  const isTurned = orientation >= 1 && orientation <= 8;
  return { format, ...sizeOf(autoOrient), frames: pages, orientation: isTurned ? orientation : 1 };
}

function optionsOf(rules: ImageRules): SharpOptions {
  return {
    // Not "warning": cameras and old tools write files that libjpeg warns about and every viewer shows. Truncation is an error.
    failOn: "error",
    limitInputPixels: rules.maxPixels,
    ignoreIcc: true,
  };
}

function sizeOf({ width, height }: { width: number; height: number }) {
  return { width, height };
}

/** Keeps four inks unconverted: their conversion to RGB takes four times as long as the decoding. */
function asCmyk(image: Sharp): Sharp {
  return image.pipelineColourspace("cmyk").toColourspace("cmyk");
}

/**
 * A large image at an eighth of its size. The decoder still reads the file to its end. It leaves out the last step, which cannot fail.
 * 50 megapixels of WebP then take 80 MiB and not 460, in a third of the time.
 */
function shrunk(image: Sharp, width: number, height: number): Sharp {
  if (width * height < shrunkFromPixels) return image;
  const eighth = (side: number) => Math.max(1, Math.floor(side / 8));
  return image.resize({ width: eighth(width), height: eighth(height), fit: "fill" });
}

/** Every pixel passes the decoder, and one channel is kept. That takes less memory and finds the same errors. */
async function readPixels(image: Sharp): Promise<void> {
  await orRefuse(image.extractChannel(0).raw().toBuffer());
}

async function orRefuse<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    // sharp's errors differ by their text alone.
    const text = error instanceof Error ? error.message : "";
    const isTooMuch = /pixel limit|out of memory|unable to allocate/i.test(text);
    throw new ImageError(isTooMuch ? "too_many_pixels" : "corrupt");
  }
}
