import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { type CallerSocket, openSocket } from "../support/caller-socket.ts";
import { until } from "../support/until.ts";
import type { Caller } from "./caller.ts";
import { isOwnWorld, startWorld } from "./world.ts";

const world = await startWorld();
afterAll(() => world[Symbol.asyncDispose]());
beforeEach(() => {
  if (isOwnWorld) world.play();
});

const open = (caller: Caller) => openSocket(caller.baseUrl, caller.key);
const message = (content: string) => ({ type: "message", role: "user", content });
/** Sends a request to the built-in model, and gives the last frame of its answer. */
const last = async (socket: CallerSocket, fields: Record<string, unknown>) =>
  (await socket.create(fields)).at(-1);

describe("Open Responses' tests of sockets", () => {
  test("a response comes as its events, in order, each in a text frame", async () => {
    const caller = await world.caller();
    using socket = await open(caller);
    const frames = await socket.create({ input: [message("Say hello.")], store: false });
    expect(frames.map(({ sequence_number: number }) => number)).toEqual([...frames.keys()]);
    expect(frames.slice(0, 2).map(({ type }) => type)).toEqual([
      "response.created",
      "response.in_progress",
    ]);
    const end = frames.at(-1);
    expect(end).toMatchObject({
      type: "response.completed",
      response: { status: "completed", output: [{ type: "message", role: "assistant" }] },
      headers: { "x-request-id": expect.stringMatching(/^req_/) },
    });
    expect(end?.headers?.["x-genmesh-cost-usd-micros"]).toMatch(/^\d+$/);
    expect(frames.slice(0, -1).every(({ headers }) => headers === undefined)).toBe(true);
  });

  test("requests of one socket are answered one after the other", async () => {
    const caller = await world.caller();
    using socket = await open(caller);
    for (const text of ["one", "two", "three"]) {
      socket.send({ type: "response.create", model: "chat-1", input: text });
    }
    for (const _ of ["one", "two", "three"]) {
      const frames = await socket.turn();
      expect(frames[0]?.type).toBe("response.created");
      expect(frames.at(-1)?.type).toBe("response.completed");
    }
  });

  test("a request continues the response before it, which is stored nowhere", async () => {
    const caller = await world.caller();
    using socket = await open(caller);
    const first = await last(socket, { input: "My name is Ada.", store: false });
    const second = await last(socket, {
      ...{ input: [message("What is my name?")], store: false },
      previous_response_id: first?.response?.id,
    });
    expect(second?.type).toBe("response.completed");
    expect(second?.response?.id).not.toBe(first?.response?.id);
  });

  test("another socket does not have the response, and goes on", async () => {
    const caller = await world.caller();
    using former = await open(caller);
    const first = await last(former, { input: "Hello.", store: false });
    former.ws.terminate();
    using socket = await open(caller);
    const previous_response_id = first?.response?.id;
    const refused = await last(socket, { input: "And now?", previous_response_id });
    expect(refused).toMatchObject({
      ...{ type: "error", status: 400 },
      error: { code: "previous_response_not_found", param: "previous_response_id" },
    });
    const clean = await last(socket, { input: [message("Hello."), message("And now?")] });
    expect(clean?.type).toBe("response.completed");
  });

  test("a response that never was is not found", async () => {
    const caller = await world.caller();
    using socket = await open(caller);
    const refused = await last(socket, { input: "x", previous_response_id: "resp_none" });
    expect(refused?.error?.code).toBe("previous_response_not_found");
  });

  test("a continuation that fails evicts the response that it named", async () => {
    const caller = await world.caller();
    using socket = await open(caller);
    const first = await last(socket, { input: "Hello.", store: false });
    const previous_response_id = first?.response?.id;
    const output = { type: "function_call_output", call_id: "call_none", output: "1" };
    const failed = await last(socket, { input: [output], previous_response_id });
    expect(failed).toMatchObject({
      ...{ type: "error", status: 400 },
      error: { code: "invalid_value", param: "input[0].call_id" },
    });
    const again = await last(socket, { input: "Hello?", previous_response_id });
    expect(again?.error?.code).toBe("previous_response_not_found");
  });

  test("a compaction begins a new chain", async () => {
    const caller = await world.caller();
    using socket = await open(caller);
    const first = await last(socket, { input: "Hello.", store: false });
    const compacted = await caller.post("/responses/compact", {
      model: "chat-1",
      input: [message("Hello."), ...(first?.response?.output ?? [])],
    });
    const begun = await last(socket, { input: [...compacted.json.output, message("Go on.")] });
    expect(begun?.type).toBe("response.completed");
    const previous_response_id = begun?.response?.id;
    expect((await last(socket, { input: "On.", previous_response_id }))?.type).toBe(
      "response.completed",
    );
  });
});

test("a warm-up has no output, costs nothing, and begins a chain", async () => {
  const caller = await world.caller();
  using socket = await open(caller);
  const frames = await socket.create({ generate: false, input: [], store: false });
  expect(frames).toMatchObject([
    { type: "response.created", response: { status: "in_progress" } },
    { type: "response.completed", response: { status: "completed", output: [] } },
  ]);
  expect(await caller.balance()).toMatchObject({ reserved: 0, monthSpend: 0 });
  const previous_response_id = frames[1]?.response?.id;
  const next = await last(socket, { input: [message("Hello.")], previous_response_id });
  expect(next?.type).toBe("response.completed");
  const refused = await last(socket, { model: "nothing", generate: false, input: [] });
  expect(refused?.error?.code).toBe("model_not_found");
});

describe.runIf(isOwnWorld)("money", () => {
  const scripted = { model: "scripted" };

  test("a chain of three turns costs what three requests with the full inputs cost", async () => {
    const [onSocket, overHttp] = [await world.caller(), await world.caller()];
    using socket = await open(onSocket);
    let previous_response_id: string | undefined;
    const input: unknown[] = [];
    for (const text of ["One.", "Two, and more words.", "Three."]) {
      const fields = { ...scripted, input: [message(text)], previous_response_id };
      const end = await last(socket, JSON.parse(JSON.stringify(fields)));
      expect(end?.type).toBe("response.completed");
      previous_response_id = end?.response?.id;
      input.push(message(text));
      const whole = await overHttp.stream("/responses", { ...scripted, input });
      const { response } = whole.find(({ name }) => name === "response.completed")?.json ?? {};
      expect(end?.response?.usage).toEqual(response.usage);
      input.push(...response.output);
    }
    const spent = (await overHttp.settled()).monthSpend;
    expect(spent).toBeGreaterThan(0);
    expect((await onSocket.settled()).monthSpend).toBe(spent);
  });

  test("a continuation that is refused costs nothing", async () => {
    const caller = await world.caller();
    using socket = await open(caller);
    const first = await last(socket, { ...scripted, input: "Hi" });
    const { monthSpend } = await caller.settled();
    const previous_response_id = first?.response?.id;
    const refused = await last(socket, {
      ...scripted,
      input: [{ role: "nobody" }],
      previous_response_id,
    });
    expect(refused?.status).toBe(400);
    expect(await caller.settled()).toMatchObject({ monthSpend, reserved: 0 });
    const again = await last(socket, { ...scripted, input: "Hi", previous_response_id });
    expect(again?.error?.code).toBe("previous_response_not_found");
  });

  test("a socket that is cut leaves no hold", async () => {
    const caller = await world.caller();
    using socket = await open(caller);
    world.play({ kind: "hang" });
    socket.send({ type: "response.create", ...scripted, input: "Hi" });
    await until("its hold is there", async () => (await caller.balance()).reserved > 0);
    socket.ws.terminate();
    await until("its hold is gone", async () => (await caller.balance()).reserved === 0);
  });

  test("a wallet that is too small refuses one request, and the socket stays", async () => {
    const caller = await world.caller({ usdMicros: 1n });
    using socket = await open(caller);
    const refused = await last(socket, { ...scripted, input: "Hi" });
    expect(refused).toMatchObject({ type: "error", status: 402 });
    expect(refused?.headers?.["x-should-retry"]).toBe("false");
    const unpaid = await last(socket, { generate: false, input: "Hi" });
    expect(unpaid?.type).toBe("response.completed");
    expect(await caller.balance()).toMatchObject({ available: 1, reserved: 0 });
  });
});
