import { connect } from "node:net";
import { deltasPerStream, leastStreamBytes } from "./answers.ts";

/** The settings of a load. */
export interface Load {
  /** Default: this machine. */
  host?: string;
  port: number;
  /** Complete requests in the bytes of the wire, used in turn. */
  requests: readonly Buffer[];
  inFlight: number;
  seconds: number;
  /** Ends the load earlier. Default: any number. */
  maxRequests?: number;
}

/** The results of a load. */
export interface LoadResult {
  requestsPerSecond: number;
  deltasPerSecond: number;
  /** Median and 99th percentile of a whole answer, milliseconds. */
  latencyMs: { p50: number; p99: number };
  /** Median time to the first delta in milliseconds, for streams only. */
  firstDeltaMs: number | undefined;
  /** Correct answers. The figures are about these. */
  requests: number;
  /** All other answers. */
  failures: number;
  /** The first of them. */
  firstFailure: string | undefined;
  deltas: number;
  /** Millions of bytes of the answers' bodies. */
  megabytesPerSecond: number;
}

/** Characters of a failure that are kept. */
const maxFailureLength = 800;
const headEnd = Buffer.from("\r\n\r\n");
/** Includes the end of the chunk before, because a CSV line that ends in 0 is no last chunk. */
const lastChunk = Buffer.from("\r\n0\r\n\r\n");
const firstDelta = Buffer.from("output_text.delta");

/**
 * Keeps `inFlight` requests open for `seconds`, each on a connection of its own. Rejects where a connection breaks, and where no answer was
 * correct.
 */
export async function runLoad(load: Load): Promise<LoadResult> {
  const { maxRequests = Number.POSITIVE_INFINITY } = load;
  const latencies: number[] = [];
  const firsts: number[] = [];
  const failures: string[] = [];
  let next = 0;
  let bytes = 0;
  const beganAt = performance.now();
  const endsAt = beganAt + load.seconds * 1_000;
  const one = () =>
    runConnection(load, {
      take: () => {
        // Each connection has at least one request, however long the connect took.
        const isLate = next >= load.inFlight && performance.now() >= endsAt;
        if (isLate || next >= maxRequests) return undefined;
        return load.requests[next++ % load.requests.length];
      },
      done(tookMs, firstMs, length) {
        latencies.push(tookMs);
        bytes += length;
        if (firstMs !== undefined) firsts.push(firstMs);
      },
      failed: (why) => failures.push(why),
    });
  await Promise.all(Array.from({ length: load.inFlight }, one));
  const seconds = (performance.now() - beganAt) / 1_000;
  if (latencies.length === 0) throw new Error(`no answer is a good one: ${failures[0]}`);
  return {
    requestsPerSecond: latencies.length / seconds,
    deltasPerSecond: (firsts.length * deltasPerStream) / seconds,
    latencyMs: { p50: percentile(latencies, 0.5), p99: percentile(latencies, 0.99) },
    firstDeltaMs: firsts.length > 0 ? percentile(firsts, 0.5) : undefined,
    requests: latencies.length,
    failures: failures.length,
    firstFailure: failures[0],
    deltas: firsts.length * deltasPerStream,
    megabytesPerSecond: bytes / seconds / 1e6,
  };
}

interface Turns {
  take(): Buffer | undefined;
  done(tookMs: number, firstDeltaMs: number | undefined, bodyBytes: number): void;
  failed(why: string): void;
}

/** Sends one request after another on one connection. It writes HTTP/1.1 by hand, because it must cost less than the measured program. */
function runConnection(
  { host = "127.0.0.1", port }: Pick<Load, "host" | "port">,
  turns: Turns,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host, noDelay: true });
    let sentAt = 0;
    let firstAt: number | undefined;
    /** Bytes of the body that are still to come. -1: chunked. Undefined: the head has not come. */
    let rest: number | undefined;
    let received = 0;
    let failure: string | undefined;
    let tail: Buffer = Buffer.alloc(0);
    const send = () => {
      const request = turns.take();
      if (!request) {
        socket.end();
        resolve();
        return;
      }
      firstAt = undefined;
      rest = undefined;
      received = 0;
      failure = undefined;
      tail = Buffer.alloc(0);
      sentAt = performance.now();
      socket.write(request);
    };
    const over = () => {
      const firstMs = firstAt === undefined ? undefined : firstAt - sentAt;
      if (firstMs !== undefined && received < leastStreamBytes) failure ??= "a stream broke off";
      if (failure === undefined) turns.done(performance.now() - sentAt, firstMs, received);
      else turns.failed(failure);
      send();
    };
    socket.on("connect", send);
    socket.on("error", reject);
    socket.on("close", () => reject(new Error("a connection was closed")));
    socket.on("data", (bytes: Buffer) => {
      let body = bytes;
      if (rest === undefined) {
        const head = tail.length > 0 ? Buffer.concat([tail, bytes]) : bytes;
        const end = head.indexOf(headEnd);
        tail = head;
        if (end < 0) return;
        const text = head.toString("latin1", 0, end);
        if (!text.startsWith("HTTP/1.1 2")) failure = head.toString("utf8", 0, maxFailureLength);
        rest = Number(/\r\ncontent-length: *(\d+)/i.exec(text)?.[1] ?? -1);
        body = head.subarray(end + headEnd.length);
        tail = Buffer.alloc(0);
      }
      received += body.length;
      if (rest < 0) {
        if (firstAt === undefined && body.includes(firstDelta)) firstAt = performance.now();
        tail = Buffer.concat([tail, body]).subarray(-lastChunk.length);
        if (!tail.equals(lastChunk)) return;
      } else {
        rest -= body.length;
        if (rest > 0) return;
      }
      over();
    });
  });
}

/** The value with this share of all values below it. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
