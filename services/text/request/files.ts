// Puts the PDFs and audio of a request into its body, also those at addresses, which it fetches. The rooms `text/files` and
// `text/tokens` measure them for the price.

import { base64Of, type ReadBase64, readBase64 } from "#kit/base/base64.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { JsonObject } from "#kit/base/json.ts";
import { isTooLong, readDataUri } from "#kit/images/index.ts";
import { type GuardedFetcher, OutsideError } from "#kit/outside/index.ts";
import { maxFileBytes, maxFileParts } from "../base/limits.ts";
import type { SoundMeter } from "../files/measuring/meter.ts";
import type { MeasuredFile } from "../tokens/files.ts";
import type { FilePart } from "./checked.ts";
import { isFetchable } from "./images.ts";

/** Sources of facts about files that are not in the request. */
export interface FileSources {
  soundMeter: SoundMeter;
  /** Fetches from addresses that callers name. */
  outside: Pick<GuardedFetcher, "fetchBytes">;
  /** For development and tests: addresses may be private and without https. */
  allowPrivate: boolean;
}

/** The files of a request in their form for the upstream. */
interface TakenFiles {
  files: MeasuredFile[];
  /** Bytes of base64 in the body's weight that are not text. */
  base64Bytes: number;
}

/** Bytes that are in memory for a request so far, and the bytes of its base64. */
interface Total {
  bytes: number;
  base64Bytes: number;
}

/**
 * Measures all audio by its bytes, checks that a PDF is one, and takes files at addresses inline, because the upstream could fetch
 * another file itself. Changes the parts, so that each has the label of its content. Refuses at the file's own field with
 * INVALID_VALUE, RATE_LIMIT_EXCEEDED or SERVICE_UNAVAILABLE.
 */
export async function takeFiles(
  parts: readonly FilePart[],
  sources: FileSources,
  { accountId }: { accountId: string },
  signal: AbortSignal,
): Promise<TakenFiles> {
  const beyond = parts[maxFileParts];
  if (beyond) invalid(beyond.param, `A request may have at most ${maxFileParts} files.`);
  const total: Total = { bytes: 0, base64Bytes: 0 };
  const files: MeasuredFile[] = [];
  // One after another, so that the files of other requests have their turn.
  for (const part of parts) {
    const take = part.field === "data" ? takeSound : takePdf;
    files.push(await take(part, sources, total, { accountId, signal }));
  }
  return { files, base64Bytes: total.base64Bytes };
}

type Asking = Parameters<SoundMeter["measure"]>[1];

async function takeSound(
  { holder, param }: FilePart,
  { soundMeter }: FileSources,
  total: Total,
  asking: Asking,
): Promise<MeasuredFile> {
  const at = `${param}.data`;
  const data = String(holder.data);
  const read = await readInline(data, readBase64, at, total);
  if (!read) return invalid(at, "The sound must be base64.");
  const sound = await soundMeter.measure(read.bytes, asking);
  if (sound?.kind !== "wav" && sound?.kind !== "mp3") {
    return invalid(at, "The sound must be a WAV or MP3 file.");
  }
  if (!read.isCanonical) holder.data = base64Of(sound.bytes);
  holder.format = sound.kind;
  return { kind: "audio", seconds: sound.seconds, mostSeconds: sound.mostSeconds };
}

async function takePdf(
  { holder, param, at: named }: FilePart,
  sources: FileSources,
  total: Total,
  { signal }: Asking,
): Promise<MeasuredFile> {
  const { file_url: url, file_data: data } = holder;
  const at = named ?? `${param}.${typeof url === "string" ? "file_url" : "file_data"}`;
  const inline =
    typeof url === "string" ? undefined : await readInline(String(data), readDataUri, at, total);
  const bytes =
    typeof url === "string"
      ? added(await fetched(url, at, sources, signal), at, total)
      : (inline?.bytes ?? invalid(at, `The file must be a data URI: ${pdfHead}…`));
  if (!isPdf(bytes)) return invalid(at, "The file must be a PDF.");
  putInline(holder, bytes, inline?.isCanonical === true);
  return { kind: "pdf", bytes: bytes.length };
}

/** Does it begin like a PDF? The upstream reads the rest, or refuses it. */
function isPdf(bytes: Uint8Array): boolean {
  return /^%PDF-[12]\.\d/.test(Buffer.from(bytes.subarray(0, 8)).toString("latin1"));
}

const pdfHead = "data:application/pdf;base64,";

/** Reads and counts bytes that are in the body itself. Undefined where they cannot be read. */
async function readInline(
  text: string,
  readText: (text: string) => Promise<ReadBase64 | undefined>,
  param: string,
  total: Total,
): Promise<ReadBase64 | undefined> {
  if (isTooLong(text, maxFileBytes)) tooLarge(param);
  const read = await readText(text);
  total.base64Bytes += text.length + (read?.breaks ?? 0);
  if (read) added(read.bytes, param, total);
  return read;
}

function added(bytes: Uint8Array, param: string, total: Total): Uint8Array {
  total.bytes += bytes.length;
  return total.bytes > maxFileBytes ? tooLarge(param) : bytes;
}

async function fetched(
  url: string,
  param: string,
  { outside, allowPrivate }: FileSources,
  signal: AbortSignal,
): Promise<Uint8Array> {
  if (!isFetchable(url, allowPrivate))
    return invalid(param, "A file_url must be a public https URL.");
  try {
    return (await outside.fetchBytes(url, { maxBytes: maxFileBytes, signal })).bytes;
  } catch (cause) {
    if (!(cause instanceof OutsideError)) throw cause;
    if (cause.kind === "too_large") return tooLarge(param);
    return refuse(ErrorReason.INVALID_VALUE, {
      param,
      message: "The file could not be fetched from its URL.",
      cause,
    });
  }
}

/** Gives a PDF the type and the name of one. Upstreams decide by either, and would read the bytes as text under another. */
function putInline(holder: JsonObject, bytes: Uint8Array, isCanonical: boolean): void {
  const { file_data: data, filename } = holder;
  delete holder.file_url;
  const name = typeof filename === "string" && filename !== "" ? filename : "document.pdf";
  holder.filename = /\.pdf$/i.test(name) ? name : `${name}.pdf`;
  if (isCanonical && typeof data === "string" && data.startsWith(pdfHead)) return;
  holder.file_data = pdfHead + base64Of(bytes);
}

function tooLarge(param: string): never {
  const mib = maxFileBytes / 1024 / 1024;
  return invalid(param, `The files of a request may have at most ${mib} MiB together.`);
}

function invalid(param: string, message: string): never {
  return refuse(ErrorReason.INVALID_VALUE, { param, message });
}
