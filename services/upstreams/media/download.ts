// Downloads a file that an upstream's answer names. It decides whether the key may go with the request, and tries again while the
// file is late.

import { createHash } from "node:crypto";
import { parseUrl } from "#kit/base/url.ts";
import { ImageError } from "#kit/images/index.ts";
import type { HttpReply } from "#kit/upstream/client.ts";
import { UpstreamError } from "#kit/upstream/errors.ts";
import type { Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { DriverContext } from "./context.ts";
import { exchange } from "./exchange.ts";
import {
  CutShortError,
  failed,
  isLateFile,
  isWorthRepeating,
  StatusError,
  toGenerationError,
  UnreadableError,
} from "./faults.ts";
import { generateTimes, generateTries } from "./limits.ts";
import type { GenerationError } from "./port.ts";
import { withTries } from "./retries.ts";

/** A file that an upstream's answer names. */
export interface Download {
  upstream: Upstream;
  /** Absolute, or relative to the upstream's base URL. */
  url: string;
  /**
   * "none": no key is sent, even within the upstream's origin. An {@link OwnKey}: it is sent as the catalog says. Default: as its
   * protocol sends it, to the upstream's origin.
   */
  key?: "none" | OwnKey;
  /** More bytes are a `failed` GenerationError. */
  maxBytes: number;
  /** The media type in the request's `accept`. */
  accept: string;
  /** The upstream's own digest of the bytes, in hexadecimal. */
  sha256?: string | undefined;
  signal: AbortSignal;
}

/** The key of an upstream whose catalog entry says how the key is sent, and to which origins. */
export interface OwnKey {
  /** May a file at this URL have the key? */
  isFor(url: URL): boolean;
  /** The headers that carry it. */
  headers(): Promise<Readonly<Record<string, string>>>;
}

/** Redirects that are followed within the upstream's origin: as many as the guarded fetcher follows. */
const mostRedirects = 3;

const outsideTimes = {
  timeoutMs: generateTimes.outsideMs,
  idleTimeoutMs: generateTimes.outsideIdleMs,
} as const;

/**
 * Opens a download and hands its bytes to `sink`. It begins again where the file is late or broke off. Rejects with a GenerationError,
 * or the signal's reason.
 */
export function download<T>(
  context: DriverContext,
  what: Download,
  sink: (chunks: AsyncIterable<Uint8Array>) => Promise<T>,
): Promise<T> {
  return whileLate(context, what.signal, () => downloadOnce(context, what, sink));
}

/**
 * Runs a step that fetches a file. Repeats it for `lateFileMs`, and a few times at least, while the file is late or incomplete, or its
 * sender breaks off. Rejects with a GenerationError, or at once with the signal's reason.
 */
export async function whileLate<T>(
  context: DriverContext,
  signal: AbortSignal,
  step: () => Promise<T>,
): Promise<T> {
  const { download: most } = generateTries;
  const tries = { most, lastingMs: generateTimes.lateFileMs, mayRepeat, signal };
  try {
    return await withTries(context, tries, step);
  } catch (error) {
    signal.throwIfAborted();
    throw toGenerationError(error, true);
  }
}

/** A complete image is not fetched again because no decoder is free. */
function mayRepeat(error: unknown): boolean {
  return isLateFile(error) || (isWorthRepeating(error) && !(error instanceof ImageError));
}

/** Is a URL in the origin of the upstream's base URL? */
export function isWithin(upstream: Upstream, url: URL): boolean {
  return url.origin === new URL(upstream.baseUrl).origin;
}

/**
 * Opens a download once and hands its bytes to `sink`. The upstream's key is sent to its own origin alone. The guarded fetcher fetches
 * files elsewhere, from public addresses, without a key.
 */
export async function downloadOnce<T>(
  context: DriverContext,
  what: Download,
  sink: (chunks: AsyncIterable<Uint8Array>) => Promise<T>,
): Promise<T> {
  const { upstream, accept, key, maxBytes, sha256, signal } = what;
  const take = (chunks: AsyncIterable<Uint8Array>) => sink(checked(chunks, sha256));
  let url = resolved(what.url, `${upstream.baseUrl}/`);
  for (let redirects = 0; redirects <= mostRedirects; redirects++) {
    const own = typeof key === "object" ? key : undefined;
    if (!(own ? own.isFor(url) : isWithin(upstream, url))) {
      const request = { maxBytes, accept, signal, ...outsideTimes };
      return context.fetcher.fetchStream(url.href, request, take);
    }
    const call = { upstream, method: "GET", url: url.href, accept, signal } as const;
    const keyed = own
      ? { key: "none" as const, headers: await own.headers() }
      : { key: key as "none" };
    const reply = await exchange(context, { ...call, ...keyed });
    try {
      if (reply.status < 300) return await take(bodyOf(reply, maxBytes));
      const { location } = reply.headers;
      if (location === undefined) throw new StatusError(reply.status);
      url = resolved(location, url.href);
    } finally {
      // A reader that stops early leaves no connection behind.
      reply.body.close();
    }
  }
  throw failed("the download is redirected too often");
}

function resolved(text: string, base: string): URL {
  const url = parseUrl(text, base);
  if (!url) throw failed("the upstream names no usable URL");
  return url;
}

/** The body of an answer as it comes. More than `maxBytes` is a `failed` GenerationError. */
export async function* bodyOf(reply: HttpReply, maxBytes: number): AsyncGenerator<Uint8Array> {
  if (Number(reply.headers["content-length"] ?? 0) > maxBytes) throw tooLarge();
  let bytes = 0;
  for (let chunk = await reply.body.next(); chunk; chunk = await reply.body.next()) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw tooLarge();
    yield chunk;
  }
}

/** Bytes of a file. It must not be empty, and must have the upstream's digest. */
async function* checked(
  chunks: AsyncIterable<Uint8Array>,
  sha256: string | undefined,
): AsyncGenerator<Uint8Array> {
  const hash = createHash("sha256");
  let isEmpty = true;
  for await (const chunk of chunks) {
    isEmpty &&= chunk.length === 0;
    if (sha256) hash.update(chunk);
    yield chunk;
  }
  if (isEmpty) throw new CutShortError("the output is empty");
  if (sha256 && hash.digest("hex") !== sha256) {
    throw new UnreadableError("the output is not what the upstream says it is");
  }
}

/** The error of an output with too many bytes. */
export function tooLarge(): GenerationError {
  return failed("the output is larger than allowed", { cause: new UpstreamError("too_large") });
}
