// Reads the body of a call on the server's side: whole, or message by message.

import type { IncomingMessage } from "node:http";
import { Code, ConnectError } from "@connectrpc/connect";
import { joinInTurns } from "#kit/base/in-turns.ts";
import { type Envelope, EnvelopeParser, tooLarge } from "./envelope.ts";
import { Inbox } from "./inbox.ts";

/** A request's whole body. Over `maxBytes` it is ResourceExhausted. A body that is cut off is Canceled. */
export function readBody(req: IncomingMessage, maxBytes: number): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    if (Number(req.headers["content-length"] ?? 0) > maxBytes) {
      reject(tooLarge(maxBytes));
      return;
    }
    let chunks: Buffer[] | undefined = [];
    let size = 0;
    req.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size <= maxBytes) chunks?.push(chunk);
      else if (chunks) {
        chunks = undefined;
        reject(tooLarge(maxBytes));
      }
    });
    req.on("end", () => {
      const [first] = chunks ?? [];
      resolve(chunks?.length === 1 && first ? first : joinInTurns(chunks ?? []));
    });
    req.on("error", () => reject(goneError()));
    // Each request emits `close`. An Error is made only where the handler is still reading.
    req.on("close", () => {
      if (!req.complete) reject(goneError());
    });
  });
}

/** The messages of a request that streams. Where a handler stops reading, the rest stays unread, but the answer is sent. */
export function readMessages<T>(
  req: IncomingMessage,
  maxBytes: number,
  parse: (payload: Uint8Array) => T,
): Inbox<T> {
  let isIgnored = false;
  const leave = () => {
    isIgnored = true;
    req.resume();
  };
  const source = { pause: () => req.pause(), resume: () => req.resume(), leave };
  const inbox = new Inbox<T>(source, parse);
  const take = ({ isEnd, payload }: Envelope) => {
    if (isEnd)
      throw new ConnectError("protocol error: a client ends no stream", Code.InvalidArgument);
    inbox.push(payload);
  };
  const parser = new EnvelopeParser(maxBytes, take);
  req.on("data", (chunk: Buffer) => {
    if (isIgnored) return;
    try {
      parser.push(chunk);
    } catch (error) {
      isIgnored = true;
      inbox.finish(error);
    }
  });
  req.on("end", () => inbox.finish(parser.isInside ? cutError() : undefined));
  req.on("error", () => inbox.finish(goneError()));
  req.on("close", () => {
    if (!req.complete) inbox.finish(goneError());
  });
  return inbox;
}

/** The error of a call whose caller has closed the connection. */
export function goneError(): ConnectError {
  return new ConnectError("the caller has gone", Code.Canceled);
}

function cutError(): ConnectError {
  return new ConnectError("protocol error: a message was cut off", Code.InvalidArgument);
}
