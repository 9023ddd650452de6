// Fetches URLs that callers name, and posts to them, without letting them reach this network. It joins the parts of this room:
// URL, look-up, address, connection, deadline, body.

import type { Dispatcher } from "undici";
import { readInTurns } from "#kit/base/in-turns.ts";
import { formatAddress, isPublicAddress, parseLiteral } from "./address.ts";
import { decodedBody } from "./body.ts";
import { withDeadline } from "./deadline.ts";
import { checkedConnector, type Dial, dialTcp } from "./dial.ts";
import { OutsideError, toOutsideError } from "./errors.ts";
import { type OutsideLimits, outsideLimits } from "./limits.ts";
import { type Resolve, resolveByQuery, resolveBySystem } from "./resolve.ts";
import { isLocalName, isWebPort, parseOutsideUrl } from "./url.ts";

/** One fetch. */
export type FetchOptions = {
  /** The largest body, decoded or not. One byte more is `too_large`. */
  readonly maxBytes: number;
  /** Milliseconds for the whole fetch, redirects included. Default: 10,000. */
  readonly timeoutMs?: number | undefined;
  /** Ends the fetch and closes its connection. The call then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** The `accept` header. Default: any type. */
  readonly accept?: string | undefined;
};

/** One fetch of something large. */
export type FetchStreamOptions = FetchOptions & {
  /**
   * Milliseconds without a byte of head or body, while the reader wants more, after which the address is `unreachable`. Default: none.
   */
  readonly idleTimeoutMs?: number | undefined;
};

/** One message to an outside address. */
export type PostOptions = {
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Milliseconds for the whole exchange. Default: 10,000. */
  readonly timeoutMs?: number | undefined;
  /** Bytes of the answer that are read and dropped, so that the sender can finish a small answer. */
  readonly maxAnswerBytes: number;
  readonly signal?: AbortSignal | undefined;
};

/** Bytes to PUT. */
export type PutBytes = { readonly bytes: Uint8Array; readonly contentType: string };

/** The fetched bytes. `contentType` is the server's declared type in lower case, without parameters. */
export type FetchedBytes = {
  readonly bytes: Uint8Array;
  readonly contentType: string | undefined;
};

/** Fetches URLs that callers name, and posts to them, at public addresses only. */
export type GuardedFetcher = {
  /** GETs the URL. Throws `OutsideError`, or the signal's reason. */
  fetchBytes(url: string, options: FetchOptions): Promise<FetchedBytes>;
  /**
   * GETs the URL and hands its body to `sink` as it comes, no faster than `sink` reads it. Answers the result of `sink`. When this
   * settles, `sink` has ended too, and so has the connection, read to its end or not. The chunks throw the errors of `fetchBytes`. An
   * error of `sink` itself is thrown unchanged.
   */
  fetchStream<T>(
    url: string,
    options: FetchStreamOptions,
    sink: (chunks: AsyncIterable<Uint8Array>) => Promise<T>,
  ): Promise<T>;
  /** POSTs to the URL and answers the status, of any number. A redirect is not followed. Throws as `fetchBytes` does. */
  post(url: string, options: PostOptions): Promise<number>;
  /** PUTs bytes to the URL, and follows no redirect. Throws as `fetchBytes` does. */
  putBytes(
    url: string,
    put: PutBytes,
    options: Pick<FetchOptions, "timeoutMs" | "signal">,
  ): Promise<void>;
};

export type GuardedFetcherOptions = {
  /** True lets every address and local name pass (but not every port). For development and tests. */
  readonly allowPrivate: boolean;
  /** Default: name servers over the network. With `allowPrivate`: the operating system. */
  readonly resolve?: Resolve;
  /** Opens connections to checked addresses. Default: TCP. */
  readonly dial?: Dial;
  readonly limits?: Partial<OutsideLimits>;
};

type Guard = Required<Omit<GuardedFetcherOptions, "limits">> & { readonly limits: OutsideLimits };

type Outcome<T> = { readonly redirect: string } | { readonly taken: T };

/** Reads the body of the answer, within the deadline. */
type Take<T> = (chunks: AsyncIterable<Uint8Array>, contentType: string | undefined) => Promise<T>;

const redirectStatuses: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/**
 * A fetcher for addresses that callers choose. Before each hop it checks the URL, its port and every address of its name. It connects
 * to those addresses, so the name is never looked up a second time. It sends no key, cookie, referrer or trace header. It keeps no
 * connection, and uses no proxy of the environment.
 * @NOTE Auto-instrumentation of undici would add trace headers here, so telemetry does not use it.
 */
export function createGuardedFetcher(options: GuardedFetcherOptions): GuardedFetcher {
  const guard: Guard = {
    allowPrivate: options.allowPrivate,
    resolve: options.resolve ?? (options.allowPrivate ? resolveBySystem : resolveByQuery()),
    dial: options.dial ?? dialTcp,
    limits: { ...outsideLimits, ...options.limits },
  };
  const get = <T>(url: string, request: FetchStreamOptions, take: Take<T>): Promise<T> => {
    const timeoutMs = request.timeoutMs ?? guard.limits.timeoutMs;
    return withDeadline({ timeoutMs, signal: request.signal }, (signal) =>
      follow(guard, url, { ...request, signal }, take),
    );
  };
  return {
    fetchBytes: (url, request) =>
      get(url, request, async (chunks, contentType) => ({
        bytes: await readInTurns(chunks),
        contentType,
      })),
    fetchStream: async <T>(
      url: string,
      request: FetchStreamOptions,
      sink: (chunks: AsyncIterable<Uint8Array>) => Promise<T>,
    ) => {
      let sinking: Promise<T> | undefined;
      let failure: { error: unknown } | undefined;
      try {
        return await get(url, request, async (chunks) => {
          sinking = sink(chunks);
          return sinking;
        });
      } catch (error) {
        // The deadline does not wait, but the sink must have stopped before another fetch begins.
        await sinking?.catch((error: unknown) => {
          failure = { error };
        });
        throw failure ? failure.error : error;
      }
    },
    post: (url, options) => post(guard, url, options),
    putBytes: (text, put, { timeoutMs = guard.limits.timeoutMs, signal: outer }) =>
      withDeadline({ timeoutMs, signal: outer }, async (signal) => {
        const url = parseOutsideUrl(text, guard.limits.urlChars);
        const headers = { "content-type": put.contentType };
        await hop(
          guard,
          url,
          { method: "PUT", headers, body: put.bytes, signal },
          async (reply) => {
            reply.body.on("error", () => {});
            const { statusCode } = reply;
            if (statusCode < 200 || statusCode > 299) {
              throw new OutsideError("bad_status", String(statusCode));
            }
          },
        );
      }),
  };
}

type Running = FetchStreamOptions & { readonly signal: AbortSignal };

async function follow<T>(guard: Guard, text: string, request: Running, take: Take<T>): Promise<T> {
  let url = parseOutsideUrl(text, guard.limits.urlChars);
  for (let redirects = 0; redirects <= guard.limits.redirects; redirects++) {
    const { signal, idleTimeoutMs } = request;
    const headers = { accept: request.accept ?? "*/*", "accept-encoding": "identity" };
    const outcome = await hop(
      guard,
      url,
      { method: "GET", headers, idleTimeoutMs, signal },
      (reply) => readResponse(reply, request, take),
    );
    if ("taken" in outcome) return outcome.taken;
    url = redirectTarget(outcome.redirect, url, guard.limits.urlChars);
  }
  throw new OutsideError("bad_status", "REDIRECTS");
}

/** A redirect to an address that no caller may name is the server's fault, hence `unsafe`. */
function redirectTarget(location: string, base: URL, urlChars: number): URL {
  try {
    return parseOutsideUrl(URL.parse(location, base.href)?.href ?? "", urlChars);
  } catch {
    throw new OutsideError("unsafe", "REDIRECT");
  }
}

/** The status counts as soon as it has come, even where the rest of the answer breaks off. */
async function post(
  guard: Guard,
  text: string,
  { timeoutMs = guard.limits.timeoutMs, signal: outer, maxAnswerBytes, ...message }: PostOptions,
): Promise<number> {
  let status: number | undefined;
  try {
    return await withDeadline({ timeoutMs, signal: outer }, (signal) => {
      const url = parseOutsideUrl(text, guard.limits.urlChars);
      const request = { ...message, method: "POST", signal } as const;
      return hop(guard, url, request, async ({ statusCode, body }) => {
        status = statusCode;
        await body.dump({ limit: maxAnswerBytes, signal });
        return statusCode;
      });
    });
  } catch (error) {
    if (status === undefined) throw error;
    return status;
  }
}

/** One request to one address, on a connection of its own. */
type Hop = {
  readonly method: "GET" | "POST" | "PUT";
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  readonly idleTimeoutMs?: number | undefined;
  readonly signal: AbortSignal;
};

async function hop<T>(
  guard: Guard,
  url: URL,
  request: Hop,
  read: (reply: Dispatcher.ResponseData) => Promise<T>,
): Promise<T> {
  const addresses = await checkedAddresses(guard, url, request.signal);
  const isSecure = url.protocol === "https:";
  // Loaded at the first fetch, because most processes never make one.
  const { Client } = await import("undici");
  const client = new Client(url.origin, {
    connect: checkedConnector({
      dial: guard.dial,
      target: {
        addresses: interleave(addresses).slice(0, guard.limits.dialledAddresses),
        port: url.port === "" ? (isSecure ? 443 : 80) : Number(url.port),
        attemptTimeoutMs: guard.limits.attemptTimeoutMs,
      },
      secureHost: isSecure ? certificateHost(url, addresses) : undefined,
      signal: request.signal,
    }),
    maxHeaderSize: guard.limits.headerBytes,
    // The deadline covers the times that these leave open.
    headersTimeout: request.idleTimeoutMs ?? 0,
    bodyTimeout: request.idleTimeoutMs ?? 0,
  });
  try {
    const response = await client.request({
      method: request.method,
      path: `${url.pathname}${url.search}`,
      // Some image hosts refuse clients without a name.
      headers: { ...request.headers, "user-agent": "genmesh" },
      body: request.body ?? null,
      reset: true,
      signal: request.signal,
    });
    return await read(response);
  } finally {
    await client.destroy();
  }
}

async function readResponse<T>(
  { statusCode, headers, body }: Dispatcher.ResponseData,
  { maxBytes, signal }: Running,
  take: Take<T>,
): Promise<Outcome<T>> {
  // The unread rest ends with the connection. Its end must not count as an error.
  body.on("error", () => {});
  const location = headerText(headers.location);
  if (redirectStatuses.has(statusCode) && location !== undefined) return { redirect: location };
  if (statusCode !== 200) throw new OutsideError("bad_status", String(statusCode));
  if (Number(headerText(headers["content-length"]) ?? 0) > maxBytes) {
    throw new OutsideError("too_large");
  }
  const encoding = headerText(headers["content-encoding"]) ?? "";
  const contentType = headerText(headers["content-type"])?.split(";")[0]?.trim().toLowerCase();
  const chunks = translated(decodedBody(body, encoding, maxBytes), signal);
  return { taken: await take(chunks, contentType === "" ? undefined : contentType) };
}

/** The chunks, with each error translated to an `OutsideError`. */
async function* translated(
  chunks: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  try {
    yield* chunks;
  } catch (error) {
    throw signal.aborted ? signal.reason : toOutsideError(error);
  }
}

function headerText(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}

/** The addresses of a URL's host as bytes, all of them checked. Throws `unsafe`. */
async function checkedAddresses(
  guard: Guard,
  url: URL,
  signal: AbortSignal,
): Promise<readonly Uint8Array[]> {
  if (!isWebPort(url)) throw new OutsideError("unsafe", "PORT");
  const literal = parseLiteral(url.hostname);
  if (literal === undefined && !guard.allowPrivate && isLocalName(url.hostname)) {
    throw new OutsideError("unsafe", "LOCAL_NAME");
  }
  const addresses = literal === undefined ? await lookUp(guard, url.hostname, signal) : [literal];
  if (!guard.allowPrivate && !addresses.every(isPublicAddress)) {
    throw new OutsideError("unsafe", "ADDRESS");
  }
  return addresses;
}

async function lookUp(guard: Guard, host: string, signal: AbortSignal): Promise<Uint8Array[]> {
  const answers = await guard.resolve(host, signal);
  // A resolver that ignored the signal must not lead to a connection after the end.
  signal.throwIfAborted();
  if (answers.length === 0) throw new OutsideError("unreachable", "NO_ADDRESS");
  return answers.map(({ address }) => {
    const bytes = parseLiteral(address);
    // For example one with a zone id: an address on this machine's links.
    if (bytes === undefined) throw new OutsideError("unsafe", "ADDRESS");
    return bytes;
  });
}

/** Alternates the families, so that a few attempts try both. */
function interleave(addresses: readonly Uint8Array[]): Uint8Array[] {
  const v6 = addresses.filter((bytes) => bytes.length === 16);
  const v4 = addresses.filter((bytes) => bytes.length === 4);
  const rounds = Math.max(v4.length, v6.length);
  return Array.from({ length: rounds }, (_, index) => [v6[index], v4[index]])
    .flat()
    .filter((bytes) => bytes !== undefined);
}

function certificateHost(url: URL, addresses: readonly Uint8Array[]): string {
  const [first] = addresses;
  const isLiteral = parseLiteral(url.hostname) !== undefined;
  return isLiteral && first !== undefined ? formatAddress(first) : url.hostname.replace(/\.$/, "");
}
