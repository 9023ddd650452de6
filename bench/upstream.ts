import { type AddressInfo, createServer, type Socket } from "node:net";
import { jsonAnswer, streamAnswer } from "./answers.ts";

// A model server that costs next to nothing: HTTP/1.1 by hand on bare sockets, with prepared answers. It prints its port. Below /paced a
// stream's deltas come 50 times a second, like a fast model's. Elsewhere they come as fast as they can be written. An image never ends, so
// that jobs wait.

/** Milliseconds between two deltas of a paced stream. */
const paceMs = 20;

const headEnd = Buffer.from("\r\n\r\n");
const asksForStream = Buffer.from('"stream":true');
const json = jsonAnswer();
const jsonReply = Buffer.concat([
  Buffer.from(
    `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${json.length}\r\n\r\n`,
  ),
  json,
]);
const stream = streamAnswer();
const streamHead = Buffer.concat([
  Buffer.from(
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
  ),
  chunk(stream.head),
]);
const streamDeltas = stream.deltas.map(chunk);
const streamTail = Buffer.concat([chunk(stream.tail), Buffer.from("0\r\n\r\n")]);

function chunk(bytes: Buffer): Buffer {
  return Buffer.concat([
    Buffer.from(`${bytes.length.toString(16)}\r\n`),
    bytes,
    Buffer.from("\r\n"),
  ]);
}

function serve(socket: Socket): void {
  let pending: Buffer = Buffer.alloc(0);
  socket.setNoDelay(true);
  socket.on("error", () => socket.destroy());
  socket.on("data", (bytes) => {
    pending = pending.length === 0 ? bytes : Buffer.concat([pending, bytes]);
    const headLength = pending.indexOf(headEnd);
    if (headLength < 0) return;
    const head = pending.toString("latin1", 0, headLength);
    const bodyLength = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0);
    const begin = headLength + headEnd.length;
    if (pending.length < begin + bodyLength) return;
    const body = pending.subarray(begin, begin + bodyLength);
    pending = pending.subarray(begin + bodyLength);
    if (head.includes("/images/")) return;
    if (body.includes(asksForStream)) {
      if (head.startsWith("POST /paced/")) sendPaced(socket);
      else sendStream(socket);
    } else socket.write(jsonReply);
  });
}

/** Each delta has a write and a turn of its own, like those of a model. */
function sendStream(socket: Socket): void {
  let at = 0;
  const next = () => {
    if (socket.destroyed) return;
    const delta = streamDeltas[at++];
    socket.write(delta ?? streamTail);
    if (delta) setImmediate(next);
  };
  socket.write(streamHead);
  setImmediate(next);
}

let pacedStreams = 0;

/** Streams that began together do not write together. Each is some milliseconds later than the one before it. */
function sendPaced(socket: Socket): void {
  let at = 0;
  const tick = () => {
    const delta = streamDeltas[at++];
    if (socket.destroyed || !delta) clearInterval(ticks);
    if (!socket.destroyed) socket.write(delta ?? streamTail);
  };
  let ticks: NodeJS.Timeout | undefined;
  socket.write(streamHead);
  setTimeout(() => {
    ticks = setInterval(tick, paceMs);
  }, pacedStreams++ % paceMs);
}

const server = createServer(serve).listen(0, "127.0.0.1", () => {
  process.stdout.write(`${(server.address() as AddressInfo).port}\n`);
});
