import type { IncomingMessage } from "node:http";
import { PassThrough, type Readable } from "node:stream";
import { awayRefusal } from "./s3-errors.ts";
import { silenceMs } from "./s3-limits.ts";

/**
 * An answer's body for a reader of any speed: a store that stays silent while the reader waits ends it with a refusal,
 * a reader that does not come for its bytes has all the time it likes. Destroying it closes the connection.
 */
export function bodyOf(response: IncomingMessage): Readable {
  const body = new PassThrough();
  const { socket } = response;
  const onSilence = () => {
    // What waits here the reader has not fetched yet; only where nothing does, the store is to blame.
    if (response.readableLength > 0 || body.writableNeedDrain) socket.setTimeout(silenceMs);
    else response.destroy(new Error(`the store was silent for ${silenceMs} ms`));
  };
  socket.setTimeout(silenceMs);
  socket.on("timeout", onSilence);
  response.once("close", () => socket.off("timeout", onSilence));
  response.on("error", (error) => body.destroy(awayRefusal(error)));
  body.once("close", () => response.destroy());
  response.pipe(body);
  return body;
}
