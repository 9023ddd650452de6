// Collects a body in memory, for the bodies of `reply-body.ts` and `decoded-body.ts`.

import { joinInTurns } from "#kit/base/in-turns.ts";
import { consume } from "#kit/stream/push-stream.ts";
import type { BodyRoom, HttpBody } from "./client.ts";
import { UpstreamError } from "./errors.ts";

/** The whole body. See {@link HttpBody.whole}. */
export function wholeBodyOf(
  body: Pick<HttpBody, "chunks">,
  maxBytes: number,
  room?: BodyRoom,
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  /** A body with an announced length is joined as it comes, so it is in memory once. */
  let joined: Buffer | undefined;
  let bytes = 0;
  let mostBytes = room?.freeBytes ?? maxBytes;
  const keep = (chunk: Buffer) => {
    if (joined) joined.set(chunk, bytes - chunk.length);
    else chunks.push(chunk);
  };
  const grow = async (chunk: Buffer) => {
    mostBytes = (await room?.reach(bytes)) ?? maxBytes;
    const whole = room?.announcedBytes ?? 0;
    if (!joined && whole >= bytes && whole <= maxBytes) {
      joined = Buffer.allocUnsafeSlow(whole);
      joined.set(Buffer.concat(chunks.splice(0)));
    }
    keep(chunk);
  };
  const reading = consume(body.chunks, (chunk) => {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new UpstreamError("too_large");
    if (bytes > mostBytes) return grow(chunk);
    keep(chunk);
    return true;
  });
  return reading.then(() => {
    if (joined) return joined.subarray(0, bytes);
    return chunks.length === 1 && chunks[0] ? chunks[0] : joinInTurns(chunks);
  });
}
