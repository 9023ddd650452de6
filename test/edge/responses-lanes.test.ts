import type { AddressInfo } from "node:net";
import { afterAll, expect, test } from "vitest";
import { type CallerSocket, openSocket } from "../support/caller-socket.ts";
import { until } from "../support/until.ts";
import { event, scriptText } from "./scripted-text.ts";
import { startEdge } from "./world.ts";

const { port, asked, begun } = scriptText();
const edge = await startEdge({ port, settings: { webSockets: { inFlight: 3 } } });
afterAll(() => edge[Symbol.asyncDispose]());
const base = `http://127.0.0.1:${edge.port}/v1`;

/** Waits until the server has read what was sent before. */
async function isRead(socket: CallerSocket): Promise<void> {
  const read = new Promise((resolve) => socket.ws.once("pong", resolve));
  socket.ws.ping();
  await read;
}
const create = (stream_id: string, input: string) => ({
  ...{ type: "response.create", model: "chat-1" },
  ...{ stream_id, input },
});
const inputsFrom = (at: number) =>
  asked.slice(at).map(({ body }) => (body.input as { content: string }[]).at(-1)?.content);
const asks = (at: number, inputs: readonly string[]) =>
  until(`${inputs} are asked`, () => inputsFrom(at).join() === inputs.join());

test("lanes are answered side by side, each in its own order, and events name theirs", async () => {
  using socket = await openSocket(base, edge.key);
  const at = asked.length;
  for (const input of ["a1", "a2", "b1", "b2", "c1", "d1"]) {
    socket.send(create(input.charAt(0), input));
  }
  await asks(at, ["a1", "b1", "c1"]);
  await isRead(socket);
  expect(inputsFrom(at)).toHaveLength(3);
  const [a1, b1, c1] = asked.slice(at);
  for (const [one, number] of [
    [b1, 0],
    [a1, 0],
    [b1, 1],
  ] as const) {
    one?.say(event("response.in_progress", { sequence_number: number }));
    const count = socket.frames.length;
    await until("its frame comes", () => socket.frames.length > count);
  }
  expect(socket.frames).toMatchObject([
    { stream_id: "b", sequence_number: 0 },
    { stream_id: "a", sequence_number: 0 },
    { stream_id: "b", sequence_number: 1 },
  ]);
  // The lane that waits for its first turn goes before the second request of another.
  c1?.finish();
  await asks(at, ["a1", "b1", "c1", "d1"]);
  b1?.finish();
  await asks(at, ["a1", "b1", "c1", "d1", "b2"]);
  a1?.finish();
  await asks(at, ["a1", "b1", "c1", "d1", "b2", "a2"]);
  for (const one of asked.slice(at + 3)) one.finish();
  await until("all have ended", () => ends(socket).length === 6);
  expect(ends(socket).slice(0, 3)).toEqual(["c", "b", "a"]);
});

const ends = ({ frames }: CallerSocket) =>
  frames.filter(({ type }) => type === "response.completed").map(({ stream_id }) => stream_id);

test("requests without a lane are answered one after the other", async () => {
  using socket = await openSocket(base, edge.key);
  const first = await begun(socket);
  const count = asked.length;
  socket.send({ type: "response.create", model: "chat-1", input: "second" });
  await isRead(socket);
  expect(asked).toHaveLength(count);
  first.finish();
  await asks(count, ["second"]);
});

test("each lane keeps its latest response, which any lane may continue", async () => {
  using socket = await openSocket(base, edge.key);
  const ids: string[] = [];
  for (const lane of ["a", "b"]) {
    (await begun(socket, { stream_id: lane, input: `${lane}1` })).finish();
    ids.push((await socket.turn()).at(-1)?.response?.id ?? "");
  }
  const [ofA, ofB] = ids;
  const fork = await begun(socket, { stream_id: "c", input: "c1", previous_response_id: ofA });
  expect(fork.body.input).toMatchObject([{ content: "a1" }, { content: "c1" }]);
  fork.finish();
  await socket.turn();
  // A request that fails makes the socket forget the response that it named. That of the other lane stays.
  const output = { type: "function_call_output", call_id: "none", output: "1" };
  const [failed] = await socket.create({
    ...{ stream_id: "c", input: [output] },
    previous_response_id: ofA,
  });
  expect(failed).toMatchObject({ stream_id: "c", error: { code: "invalid_value" } });
  const [gone] = await socket.create({
    ...{ stream_id: "a", input: "a2" },
    previous_response_id: ofA,
  });
  expect(gone).toMatchObject({
    ...{ stream_id: "a", status: 400 },
    error: { code: "previous_response_not_found" },
  });
  const next = await begun(socket, { stream_id: "b", input: "b2", previous_response_id: ofB });
  expect(next.body.input).toMatchObject([{ content: "b1" }, { content: "b2" }]);
  next.finish();
});

test("lanes of one name on two sockets are strangers", async () => {
  using socket = await openSocket(base, edge.key);
  using other = await openSocket(base, edge.key);
  const lane = { stream_id: "same" };
  (await begun(socket, lane)).finish();
  const previous_response_id = (await socket.turn()).at(-1)?.response?.id;
  const running = await begun(socket, { ...lane, previous_response_id });
  // It waits for no request of the other socket, and has none of its responses.
  const [refused] = await other.create({ ...lane, input: "x", previous_response_id });
  expect(refused).toMatchObject({ ...lane, error: { code: "previous_response_not_found" } });
  (await begun(other, lane)).finish();
  expect((await other.turn()).at(-1)).toMatchObject({ ...lane, type: "response.completed" });
  running.finish();
  // The refusal of the other socket has not made this one forget.
  expect((await socket.turn()).at(-1)).toMatchObject({ ...lane, type: "response.completed" });
});

test("a socket has 32 lanes with a name", async () => {
  using socket = await openSocket(base, edge.key);
  for (let n = 0; n <= 32; n++) {
    const warmUp = { stream_id: `lane-${n}`, generate: false };
    socket.send({ ...create("", "x"), ...warmUp, type: n < 32 ? "none" : "response.create" });
    await socket.turn();
  }
  expect(socket.frames.at(31)?.error?.code).toBe("unsupported_parameter");
  expect(socket.frames.at(32)).toMatchObject({
    status: 400,
    error: { code: "invalid_stream_id", param: "stream_id" },
  });
  (await begun(socket, { stream_id: "lane-31" })).finish();
  expect((await socket.turn()).at(-1)).toMatchObject({ stream_id: "lane-31" });
});

test("all lanes are given up where their caller leaves", async () => {
  using socket = await openSocket(base, edge.key);
  const one = await begun(socket, { stream_id: "a" });
  const other = await begun(socket, { stream_id: "b" });
  socket.ws.terminate();
  await until("both calls are aborted", () => one.signal.aborted && other.signal.aborted);
});

test("a process that stops ends the lanes under way, refuses those that wait, and closes", async () => {
  const app = await edge.another();
  const { port } = app.server.address() as AddressInfo;
  using socket = await openSocket(`http://127.0.0.1:${port}/v1`, edge.key);
  const one = await begun(socket, { stream_id: "a" });
  const other = await begun(socket, { stream_id: "b" });
  socket.send(create("a", "It waits."));
  await isRead(socket);
  app.sockets.drain();
  await until("the one that waits is refused", () => socket.frames.length === 1);
  expect(socket.frames[0]).toMatchObject({
    stream_id: "a",
    error: { code: "websocket_connection_limit_reached" },
  });
  one.finish();
  await socket.turn();
  await socket.turn();
  expect([other.signal.aborted, socket.ws.readyState]).toEqual([false, socket.ws.OPEN]);
  other.finish();
  expect(await socket.closed).toBe(1012);
  expect(ends(socket)).toEqual(["a", "b"]);
});
