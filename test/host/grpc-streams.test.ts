import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type HostWorld, meshToken, startHostWorld } from "./world.ts";

/** Calls that one session may have open at once. */
const bound = 256;
/** Frames of HTTP/2, by their numbers. */
const frames = { data: 0, headers: 1, reset: 3, settings: 4 } as const;
const refusedStream = 7;

let world: HostWorld;
beforeAll(async () => {
  world = await startHostWorld();
});
afterAll(() => world[Symbol.asyncDispose]());

function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** A header in plain form, without HPACK's tables. */
function literal(name: string, value: string): Buffer {
  return Buffer.concat([
    Buffer.from([0, name.length]),
    Buffer.from(name),
    Buffer.from([value.length]),
    Buffer.from(value),
  ]);
}

const call = Buffer.concat([
  literal(":method", "POST"),
  literal(":scheme", "http"),
  literal(":path", "/genmesh.catalog.v1.CatalogService/WatchSnapshots"),
  literal(":authority", "x"),
  literal("content-type", "application/grpc"),
  literal("te", "trailers"),
  literal("authorization", `Bearer ${meshToken}`),
]);
/** A watch of the catalog, which has no end of its own. */
const watch = (stream: number) =>
  Buffer.concat([
    frame(frames.headers, 0x4, stream, call),
    frame(frames.data, 0x1, stream, Buffer.alloc(5)),
  ]);

/** Opens `count` watches on one connection, all at once, even above the server's own limit. */
async function openWatches(count: number) {
  const [host = "", port] = world.mesh.grpcAddress.split(":");
  const socket = connect(Number(port), host);
  await once(socket, "connect");
  // A server may end the session while the test writes.
  socket.on("error", () => {});
  const begun = new Set<number>();
  const refused = new Set<number>();
  const settings: number[] = [];
  onFrames(socket, (type, stream, payload) => {
    if (type === frames.settings) {
      for (let at = 0; at + 6 <= payload.length; at += 6) {
        if (payload.readUInt16BE(at) === 3) settings.push(payload.readUInt32BE(at + 2));
      }
    }
    if (type === frames.headers) begun.add(stream);
    if (type === frames.reset && payload.readUInt32BE(0) === refusedStream) refused.add(stream);
  });
  const streams = Array.from({ length: count }, (_, at) => 2 * at + 1);
  socket.write(
    Buffer.concat([
      Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
      frame(frames.settings, 0, 0, Buffer.alloc(0)),
      ...streams.map(watch),
    ]),
  );
  while (begun.size + refused.size < count) await once(socket, "data");
  return { socket, begun, refused, settings, [Symbol.dispose]: () => void socket.destroy() };
}

function onFrames(
  socket: Socket,
  take: (type: number, stream: number, payload: Buffer) => void,
): void {
  let rest = Buffer.alloc(0);
  socket.on("data", (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= 9 && rest.length >= 9 + rest.readUIntBE(0, 3)) {
      const end = 9 + rest.readUIntBE(0, 3);
      take(rest[3] ?? 0, rest.readUInt32BE(5) & 0x7fff_ffff, rest.subarray(9, end));
      rest = rest.subarray(end);
    }
  });
}

test("a session has 256 calls at once: the rest is refused, and another session is served", async () => {
  using hostile = await openWatches(600);
  expect(hostile.settings).toEqual([bound]);
  expect([hostile.begun.size, hostile.refused.size]).toEqual([bound, 600 - bound]);
  using other = await openWatches(3);
  expect(other.begun.size).toBe(3);
});
