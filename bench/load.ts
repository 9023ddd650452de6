import { connect } from "node:net";
import { deltasPerStream } from "./answers.ts";

/** What a load is. */
export interface Load {
  port: number;
  /** Complete requests as they go over the wire, taken in turn. */
  requests: readonly Buffer[];
  inFlight: number;
  seconds: number;
}

/** What came of it. */
export interface LoadResult {
  requestsPerSecond: number;
  deltasPerSecond: number;
  /** Median and 99th percentile of a whole answer, milliseconds. */
  latencyMs: { p50: number; p99: number };
  /** Median time to the first delta, milliseconds; of streams only. */
  firstDeltaMs: number | undefined;
  requests: number;
}

const headEnd = Buffer.from("\r\n\r\n");
const lastChunk = Buffer.from("0\r\n\r\n");
const firstDelta = Buffer.from("output_text.delta");

/** Keeps `inFlight` requests open, each on a connection of its own, for so many seconds. Rejects at the first failure. */
export async function runLoad(load: Load): Promise<LoadResult> {
  const latencies: number[] = [];
  const firsts: number[] = [];
  let next = 0;
  const beganAt = performance.now();
  const endsAt = beganAt + load.seconds * 1_000;
  const one = () =>
    runConnection(load.port, {
      take: () => {
        if (performance.now() >= endsAt) return undefined;
        return load.requests[next++ % load.requests.length];
      },
      done(tookMs, firstMs) {
        latencies.push(tookMs);
        if (firstMs !== undefined) firsts.push(firstMs);
      },
    });
  await Promise.all(Array.from({ length: load.inFlight }, one));
  const seconds = (performance.now() - beganAt) / 1_000;
  return {
    requestsPerSecond: latencies.length / seconds,
    deltasPerSecond: (firsts.length * deltasPerStream) / seconds,
    latencyMs: { p50: percentile(latencies, 0.5), p99: percentile(latencies, 0.99) },
    firstDeltaMs: firsts.length > 0 ? percentile(firsts, 0.5) : undefined,
    requests: latencies.length,
  };
}

interface Turns {
  take(): Buffer | undefined;
  done(tookMs: number, firstDeltaMs: number | undefined): void;
}

/** One request after another on one connection. HTTP/1.1 by hand: it must cost less than what it measures. */
function runConnection(port: number, turns: Turns): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: "127.0.0.1", noDelay: true });
    let sentAt = 0;
    let firstAt: number | undefined;
    /** Bytes of the body to come; -1: chunked; undefined: the head has not come. */
    let rest: number | undefined;
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
      tail = Buffer.alloc(0);
      sentAt = performance.now();
      socket.write(request);
    };
    const fail = (why: string) => {
      socket.destroy();
      reject(new Error(why));
    };
    socket.on("connect", send);
    socket.on("error", reject);
    socket.on("data", (bytes: Buffer) => {
      let body = bytes;
      if (rest === undefined) {
        const head = tail.length > 0 ? Buffer.concat([tail, bytes]) : bytes;
        const end = head.indexOf(headEnd);
        tail = head;
        if (end < 0) return;
        const text = head.toString("latin1", 0, end);
        if (!text.startsWith("HTTP/1.1 200"))
          return fail(`not 200: ${head.toString().slice(0, 800)}`);
        rest = Number(/\r\ncontent-length: *(\d+)/i.exec(text)?.[1] ?? -1);
        body = head.subarray(end + headEnd.length);
        tail = Buffer.alloc(0);
      }
      if (rest < 0) {
        if (firstAt === undefined && body.includes(firstDelta)) firstAt = performance.now();
        tail = Buffer.concat([tail, body]).subarray(-lastChunk.length);
        if (!tail.equals(lastChunk)) return;
      } else {
        rest -= body.length;
        if (rest > 0) return;
      }
      turns.done(performance.now() - sentAt, firstAt === undefined ? undefined : firstAt - sentAt);
      send();
    });
  });
}

function percentile(values: readonly number[], share: number): number {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
