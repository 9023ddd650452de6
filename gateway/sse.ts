// Writes server-sent events to a caller, and notices answers that are silent for too long to send a sign of life.

import { once } from "node:events";
import type { Writable } from "node:stream";
import type { FastifyReply } from "fastify";
import type { Clock } from "#kit/time/clock.ts";
import { keepAliveCommentMs, oneWriteBytes, silenceSweepMs } from "./limits.ts";
import { createSweep } from "./sweep.ts";

/** An answer of server-sent events. */
export interface EventStream {
  /** Writes whole events in one write. Await the result where the connection is full at present. */
  write(events: Uint8Array | string): Promise<void> | undefined;
  /** Writes a sign of life between two events, unless the reader is behind anyway. */
  alive(): void;
  /** Ends the answer. */
  end(): void;
}

/** A single line. With a blank one behind it, some decoders would make an event without data of it. */
const keepAliveComment = ": keep-alive\n";

/** How a stream shows that it goes on: by a comment, or by an event `ping`, which Messages has. */
export type LifeSign = "comment" | "ping";

/** Takes the answer over and sends its headers with the first write. */
export function openEventStream(reply: FastifyReply, lifeSign: LifeSign = "comment"): EventStream {
  const { raw } = reply;
  reply.hijack();
  // Writing into a connection that just closed is no fault. Its `close` event shows the closing.
  raw.on("error", () => {});
  raw.writeHead(200, {
    ...(reply.getHeaders() as Record<string, string>),
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache, no-transform",
    // Proxies of the nginx family would collect events otherwise.
    "x-accel-buffering": "no",
    "x-content-type-options": "nosniff",
  });
  let hasBegun = false;
  return {
    write(events) {
      // A chunk without bytes would be the end of the body.
      if (raw.destroyed || events.length === 0) return undefined;
      const { socket } = raw;
      if (!hasBegun || !socket || !raw.chunkedEncoding || events.length > oneWriteBytes) {
        hasBegun = true;
        return raw.write(events) ? undefined : drained(raw);
      }
      return socket.write(chunkOf(events)) ? undefined : drained(socket);
    },
    alive() {
      const isBehind = raw.writableNeedDrain || raw.socket?.writableNeedDrain;
      const sign = lifeSign === "ping" ? eventText("ping", { type: "ping" }) : keepAliveComment;
      if (!raw.destroyed && !isBehind) raw.write(sign);
    },
    end() {
      if (!raw.destroyed) raw.end();
    },
  };
}

/**
 * A chunk of the body (RFC 9112, 7.1) as one buffer. Node makes four of it and a vector write in the next tick. For a small delta that
 * costs more than the bytes.
 */
function chunkOf(events: Uint8Array | string): Buffer {
  const bytes = typeof events === "string" ? Buffer.from(events) : events;
  const head = `${bytes.length.toString(16)}\r\n`;
  const chunk = Buffer.allocUnsafe(head.length + bytes.length + 2);
  chunk.write(head, "latin1");
  chunk.set(bytes, head.length);
  chunk.write("\r\n", head.length + bytes.length, "latin1");
  return chunk;
}

/** Text of one event. `data` has no line breaks, because JSON has none. */
export function eventText(event: string, data: unknown): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** Text of one event without a name, as OpenAI's streams but that of Responses have them. */
export function dataText(data: unknown): string {
  return `data: ${JSON.stringify(data)}\n\n`;
}

/** An answer whose silence is measured. */
export interface Silence extends Disposable {
  /** Starts the time again. */
  broken(): void;
}

/** Measures the silence of answers. */
export interface Silences {
  /** Calls `onSilence` after every 15 s without a {@link Silence.broken}, until disposed. */
  watch(onSilence: () => void): Silence;
}

/** Makes it, without an answer. */
export function createSilences(clock: Clock): Silences {
  const open = new Set<{ lastMs: number; onSilence: () => void }>();
  const look = () => {
    // The next look would be too late for those whose time is over by then.
    const dueMs = clock.steady() + silenceSweepMs - keepAliveCommentMs;
    for (const silence of open) {
      if (silence.lastMs >= dueMs) continue;
      silence.lastMs = clock.steady();
      silence.onSilence();
    }
  };
  const sweep = createSweep(clock, open, { everyMs: silenceSweepMs, look });
  return {
    watch(onSilence) {
      const silence = {
        lastMs: clock.steady(),
        onSilence,
        broken() {
          silence.lastMs = clock.steady();
        },
        [Symbol.dispose]: () => void open.delete(silence),
      };
      open.add(silence);
      sweep();
      return silence;
    },
  };
}

async function drained(raw: Writable): Promise<void> {
  const closed = new AbortController();
  const close = () => closed.abort();
  raw.once("close", close);
  try {
    await once(raw, "drain", { signal: closed.signal });
  } catch {
    // Closed: the signal of the caller of `write` aborts.
  } finally {
    raw.off("close", close);
  }
}
