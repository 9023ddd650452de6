// Brings the images of a request into the form that upstreams take, and learns their sizes for the price. An image that cannot be
// decoded is refused here, before money is held.

import { base64Of, type ReadBase64, readBase64 } from "#kit/base/base64.ts";
import { ErrorReason, isRefusal, refuse, unavailable } from "#kit/base/errors.ts";
import type { JsonObject } from "#kit/base/json.ts";
import { parseUrl } from "#kit/base/url.ts";
import {
  ImageError,
  type ImageOwner,
  type ImageRules,
  type ImageVerifier,
  isDataUri,
  isTooLong,
  readImageUri,
} from "#kit/images/index.ts";
import {
  type GuardedFetcher,
  isLocalNameOrNonPublicLiteral,
  OutsideError,
} from "#kit/outside/index.ts";
import { tooManyAtOnce } from "#kit/share/fair-share.ts";
import { imagesAtOnce, maxImageBytes, maxImagePixels, maxImages } from "../base/limits.ts";
import type { ImageSize } from "../tokens/patches.ts";
import type { ImagePart } from "./checked.ts";

/** Sources of facts about images that are not in the request. */
export interface ImageSources {
  verifier: Pick<ImageVerifier, "verify">;
  /** Fetches from addresses that callers name. */
  outside: Pick<GuardedFetcher, "fetchBytes">;
  /** For development and tests: addresses may be private and without https. */
  allowPrivate: boolean;
  /** Bytes of an image file of the caller's account. Refuses with FILE_NOT_FOUND. */
  readFile(fileId: string, signal: AbortSignal): Promise<Uint8Array>;
}

/** The images of a request in their form for the upstream. */
interface TakenImages {
  /** The places of the images. An address that the upstream fetches is text. */
  parts: readonly ImagePart[];
  sizes: ImageSize[];
  /** Bytes of base64 in the body's weight that are not text. */
  base64Bytes: number;
}

/** An image whose place in the body is known. `bytes` undefined: it must still be fetched or read. */
interface Pending {
  part: ImagePart;
  param: string;
  bytes: Uint8Array | undefined;
  /** Does the body hold the bytes in the one form that all readers understand in the same way? */
  isCanonical: boolean;
  /** True for an address that the upstream itself fetches. */
  goesAsAddress: boolean;
}

const inputRules: ImageRules = {
  accept: ["jpeg", "png"],
  maxBytes: maxImageBytes,
  maxPixels: maxImagePixels,
};
/** An image that a model made may be a WebP, and is sent back unchanged. Messages takes WebP from callers, too. */
const webpRules: ImageRules = { ...inputRules, accept: ["jpeg", "png", "webp"] };

/**
 * Checks every image by decoding it, and takes the images inline that the upstream must not fetch: files of the account, and with
 * `inlineAddresses` all. Changes the parts. Refuses with IMAGE_LIMIT_EXCEEDED, IMAGE_TOO_LARGE, INVALID_IMAGE, REFERENCE_NOT_FOUND,
 * RATE_LIMIT_EXCEEDED or SERVICE_UNAVAILABLE, at the image's own field.
 */
export async function takeImages(
  parts: readonly ImagePart[],
  sources: ImageSources,
  { accountId, inlineAddresses }: { accountId: string; inlineAddresses: boolean },
  signal: AbortSignal,
): Promise<TakenImages> {
  const beyond = parts[maxImages];
  if (beyond) refuse(ErrorReason.IMAGE_LIMIT_EXCEEDED, { param: beyond.param });
  const total = { bytes: 0, base64Bytes: 0 };
  if (parts.length === 0) return { parts: [], sizes: [], base64Bytes: 0 };
  const pending: Pending[] = [];
  for (const part of parts) {
    pending.push(await readPart(part, sources.allowPrivate, inlineAddresses, total));
  }
  const sizes: ImageSize[] = new Array(pending.length).fill(undefined);
  const waiting = pending.entries();
  // The first refusal ends the work on the others.
  const stop = new AbortController();
  const either = AbortSignal.any([signal, stop.signal]);
  const work = async () => {
    for (const [index, image] of waiting) {
      if (image.goesAsAddress) continue;
      sizes[index] = await takeOne(image, sources, total, { accountId, signal: either });
    }
  };
  const workers = Array.from({ length: Math.min(imagesAtOnce, pending.length) }, work);
  await Promise.all(workers).catch((error) => {
    stop.abort(error);
    throw error;
  });
  const inline = pending.filter(({ goesAsAddress }) => !goesAsAddress).map(({ part }) => part);
  return { parts: inline, sizes, base64Bytes: total.base64Bytes };
}

/** Reads everything about one image that the body shows. */
async function readPart(
  part: ImagePart,
  allowPrivate: boolean,
  inlineAddresses: boolean,
  total: { bytes: number; base64Bytes: number },
): Promise<Pending> {
  if (part.field === "result") {
    const param = `${part.param}.result`;
    const read = await readInline(String(part.holder.result), readBase64, total, param);
    return { part, param, ...read, goesAsAddress: false };
  }
  const url = part.holder.image_url;
  if (typeof url !== "string") {
    return { part, param: `${part.param}.file_id`, ...notRead, goesAsAddress: false };
  }
  const param = part.at ?? `${part.param}.image_url`;
  if (isDataUri(url)) {
    const read = await readInline(url, readImageUri, total, param);
    return { part, param, ...read, goesAsAddress: false };
  }
  if (!isFetchable(url, allowPrivate)) refuse(ErrorReason.INVALID_IMAGE, { param });
  return { part, param, ...notRead, goesAsAddress: !inlineAddresses };
}

const notRead = { bytes: undefined, isCanonical: false };

/** Reads and counts bytes that are in the body itself. */
async function readInline(
  text: string,
  read: (text: string) => Promise<ReadBase64 | undefined>,
  total: { bytes: number; base64Bytes: number },
  param: string,
): Promise<Pick<ReadBase64, "bytes" | "isCanonical">> {
  if (isTooLong(text, maxImageBytes)) refuse(ErrorReason.IMAGE_TOO_LARGE, { param });
  const { bytes, isCanonical, breaks } =
    (await read(text)) ?? refuse(ErrorReason.INVALID_IMAGE, { param });
  total.base64Bytes += text.length + breaks;
  addBytes(bytes, total, param);
  return { bytes, isCanonical };
}

function addBytes(bytes: Uint8Array, total: { bytes: number }, param: string): Uint8Array {
  total.bytes += bytes.length;
  if (bytes.length > maxImageBytes || total.bytes > maxImageBytes) {
    refuse(ErrorReason.IMAGE_TOO_LARGE, { param });
  }
  return bytes;
}

/** Is it an address that a caller may name? */
export function isFetchable(url: string, allowPrivate: boolean): boolean {
  const scheme = parseUrl(url)?.protocol;
  return allowPrivate
    ? scheme === "https:" || scheme === "http:"
    : scheme === "https:" && !isLocalNameOrNonPublicLiteral(url);
}

async function takeOne(
  image: Pending,
  sources: ImageSources,
  total: { bytes: number },
  owner: ImageOwner,
): Promise<ImageSize> {
  const { signal } = owner;
  const { part, param } = image;
  const bytes = image.bytes ?? addBytes(await load(image, sources, signal), total, param);
  const rules = part.field === "result" || part.takesWebp ? webpRules : inputRules;
  signal.throwIfAborted();
  const verified = await sources.verifier.verify(bytes, rules, owner).catch((error) => {
    refuseImage(error, param);
  });
  if (part.field === "image_url") {
    putInline(part.holder, bytes, image.isCanonical, verified.mimeType);
  } else if (!image.isCanonical) part.holder.result = base64Of(bytes);
  return { width: verified.width, height: verified.height };
}

/** Puts the decoded image in with its real type, also where the caller wrote another one. */
function putInline(
  holder: JsonObject,
  bytes: Uint8Array,
  isCanonical: boolean,
  mimeType: string,
): void {
  const head = `data:${mimeType};base64,`;
  const url = holder.image_url;
  delete holder.file_id;
  if (isCanonical && typeof url === "string" && url.startsWith(head)) return;
  holder.image_url = head + base64Of(bytes);
}

async function load(
  { part, param }: Pending,
  sources: ImageSources,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const url = part.holder.image_url;
  try {
    if (typeof url !== "string") return await sources.readFile(String(part.holder.file_id), signal);
    const fetched = await sources.outside.fetchBytes(url, { maxBytes: maxImageBytes, signal });
    return fetched.bytes;
  } catch (error) {
    if (isRefusal(error, ErrorReason.FILE_NOT_FOUND)) {
      refuse(ErrorReason.REFERENCE_NOT_FOUND, { param });
    }
    if (!(error instanceof OutsideError)) throw error;
    refuse(error.kind === "too_large" ? ErrorReason.IMAGE_TOO_LARGE : ErrorReason.INVALID_IMAGE, {
      param,
      cause: error,
    });
  }
}

function refuseImage(error: unknown, param: string): never {
  if (!(error instanceof ImageError)) throw error;
  switch (error.kind) {
    case "too_large":
      return refuse(ErrorReason.IMAGE_TOO_LARGE, { param });
    case "busy":
      throw tooManyAtOnce();
    case "unavailable":
      throw unavailable(error);
    case "too_many_pixels":
      return refuse(ErrorReason.INVALID_IMAGE, {
        param,
        message: "An image may have at most 50 megapixels.",
      });
    case "unsupported_format":
    case "corrupt":
    case "timeout":
      return refuse(ErrorReason.INVALID_IMAGE, { param });
  }
}
