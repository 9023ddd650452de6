import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import { connect } from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterEach, expect, test } from "vitest";
import {
  FrameReader,
  frameKinds,
  frameOf,
  framesPath,
  framesProtocol,
} from "#kit/rpc/wire/frames.ts";
import { until } from "../../test/support/until.ts";
import { createHttpPort, type PartialHandler } from "./http-port.ts";

setFlagsFromString("--expose-gc");
const collectGarbage: () => void = runInNewContext("gc");

const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

/** A port whose callers bring the token `t`. */
async function openPort(handler: PartialHandler) {
  let server: Server | undefined;
  const port = createHttpPort({
    address: { host: "127.0.0.1", port: 0, portVariable: "PORT" },
    handlers: [handler],
    isCaller: (authorization) => authorization === "Bearer t",
    createServer(options, listener) {
      server = createServer(options, listener);
      return server;
    },
  });
  cleanUps.push(() => port[Symbol.asyncDispose]());
  const number = await port.listen();
  const connections = () =>
    new Promise<number>((resolve) => server?.getConnections((_, count) => resolve(count)));
  return { port: number, connections };
}

/** Asks for frames, and gives the first line of the reply. The socket stays open, also when the port has said its last. */
async function askForFrames(port: number, token: string) {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  cleanUps.push(() => socket.destroy());
  socket.on("error", () => {});
  const head = [
    `GET ${framesPath} HTTP/1.1`,
    "host: a",
    "connection: upgrade",
    `upgrade: ${framesProtocol}`,
    `authorization: Bearer ${token}`,
  ];
  socket.write(`${head.join("\r\n")}\r\n\r\n`);
  const [reply] = await once(socket, "data");
  return { socket, reply: String(reply).split("\r\n")[0] };
}

test("a connection of frames keeps nothing of the calls that were answered", async () => {
  const answers: WeakRef<ServerResponse>[] = [];
  const { port } = await openPort((_, response) => {
    answers.push(new WeakRef(response));
    response.writeHead(200).end();
    return true;
  });
  const { socket, reply } = await askForFrames(port, "t");
  expect(reply).toBe("HTTP/1.1 101 Switching Protocols");
  let answered = 0;
  const reader = new FrameReader(() => answered++);
  socket.on("data", (chunk) => reader.push(chunk));
  const head = "/a\ncontent-type\napplication/proto";
  for (let call = 1; call <= 50; call++) socket.write(frameOf(frameKinds.request, call, head));
  await until("all are answered", () => answered === 50);
  await until(
    "they are gone",
    () => {
      collectGarbage();
      return answers.every((answer) => answer.deref() === undefined);
    },
    { withinMs: 10_000 },
  );
  expect(socket.destroyed).toBe(false);
});

test("a connection that is refused frames is closed, even where its caller stays", async () => {
  const { port, connections } = await openPort(() => false);
  const { reply } = await askForFrames(port, "other");
  expect(reply).toBe("HTTP/1.1 401 Unauthorized");
  await until("the port has closed it", async () => (await connections()) === 0, {
    withinMs: 10_000,
  });
});
