import { afterAll, describe, expect, test } from "vitest";
import { createWorkshop } from "#kit/threads/workshop.ts";
import { createTokenCounter } from "../../services/text/tokens/count.ts";
import { until } from "../support/until.ts";
import { developerPrompt, ownPrompt, promptMark } from "./catalog.ts";
import { ownWorldOnly, startWorld } from "./world.ts";

const world = await startWorld();
afterAll(() => world[Symbol.asyncDispose]());
const caller = await world.caller();
const messages = [
  { role: "system", content: "Be kind." },
  { role: "user", content: "Hi" },
];

describe("the developer prompt goes up", () => {
  ownWorldOnly();
  const tools = [{ type: "function", name: "f" }, { type: "web_search" }];
  const turn = [
    { role: "user", content: "Go." },
    { type: "function_call", call_id: "call_1", name: "f", arguments: "{}" },
    { type: "function_call_output", call_id: "call_1", output: "done" },
  ];

  test.for([
    ["a plain request", "/responses", { input: "Hi" }],
    ["a stream", "/responses", { input: "Hi", stream: true }],
    ["agent tools", "/responses", { input: "Hi", tools }],
    ["a turn with a tool's output", "/responses", { input: turn, tools }],
    ["compaction", "/responses/compact", { input: turn }],
  ] as const)("with %s, before the caller's instructions", async ([, path, body]) => {
    const seen = world.play();
    await caller.post(path, { model: "scripted", ...body, instructions: "Mine." });
    await caller.post(path, { model: "scripted", ...body });
    expect(seen.map((request) => request.body.instructions)).toEqual([
      `${developerPrompt}\n\nMine.`,
      developerPrompt,
    ]);
    if (typeof body.input !== "string") expect(seen[0]?.body.input).toEqual(turn);
  });

  test.for(["legacy", "peer", "scripted"])(
    "with chat on %s, before its messages",
    async (model) => {
      const seen = world.play();
      await caller.post("/chat/completions", { model, messages });
      const { instructions = "", messages: sent, input } = seen[0]?.body ?? {};
      const words = [
        instructions,
        ...(sent ?? input).map((one: { content: string }) => one.content),
      ];
      expect(words.filter(Boolean)).toEqual([developerPrompt, "Be kind.", "Hi"]);
    },
  );

  test("as the model's own where it has one, and not at all where that is empty", async () => {
    const seen = world.play();
    for (const model of ["own-prompt", "no-prompt"]) {
      await caller.post("/responses", { model, input: "Hi", instructions: "Mine." });
      await caller.post("/responses", { model, input: "Hi" });
    }
    expect(seen.map(({ body }) => body.instructions)).toEqual([
      `${ownPrompt}\n\nMine.`,
      ownPrompt,
      "Mine.",
      undefined,
    ]);
  });

  test("and is charged as input", async () => {
    const payer = await world.caller();
    const costOf = async (model: string) => {
      const before = await payer.balance();
      await payer.post("/responses", { model, input: "Hi" });
      return before.available - (await payer.settled()).available;
    };
    world.play({ kind: "ok", usage: null });
    const difference = (await costOf("scripted")) - (await costOf("no-prompt"));
    expect(difference).toBe(await createTokenCounter(createWorkshop()).count([developerPrompt]));
  });
});

describe("the developer prompt never comes down", () => {
  ownWorldOnly();

  test("in an answer: there the instructions are the caller's own", async () => {
    world.play();
    for (const [sent, shown] of [
      ["Mine.", "Mine."],
      [undefined, null],
      [null, null],
    ]) {
      const body = { model: "scripted", input: "Hi", instructions: sent };
      const { json } = await caller.post("/responses", body);
      expect(json.instructions).toBe(shown);
      for (const { json: event } of await caller.stream("/responses", body)) {
        if (event?.response) expect(event.response.instructions).toBe(shown);
      }
    }
  });

  test("in any other place where upstream repeats it", async () => {
    const echo = {
      instructions: developerPrompt,
      input: [{ role: "system", content: developerPrompt }],
    };
    const response = { id: "r", object: "response", status: "completed", output: [], ...echo };
    const types = ["created", "in_progress", "queued", "novel", "completed"];
    const debug = { echo_upstream_body: { instructions: developerPrompt } };
    const events = types.map((one) => ({ type: `response.${one}`, response, debug }));
    world.play({ kind: "events", events });
    const streamed = await caller.stream("/responses", { model: "scripted", input: "Hi" });
    expect(JSON.stringify(streamed)).not.toContain(promptMark);
    world.play({ kind: "json", body: response });
    const { status, text } = await caller.post("/responses", { model: "scripted", input: "Hi" });
    expect(status).toBe(200);
    expect(text).not.toContain(promptMark);
  });

  test.for([
    ["an HTTP error", { kind: "status", status: 400, message: developerPrompt, param: "input" }],
    ["a server's error", { kind: "status", status: 500, message: developerPrompt }],
    ["a body of garbage", { kind: "garbage", body: developerPrompt }],
    ["an error body", { kind: "json", body: { error: { message: developerPrompt } } }],
    [
      "a failed response",
      {
        kind: "json",
        body: { object: "response", status: "failed", error: { message: developerPrompt } },
      },
    ],
    ["an error event", { kind: "events", events: [{ type: "error", message: developerPrompt }] }],
  ] as const)("in %s", async ([, behaviour]) => {
    world.play(behaviour);
    for (const stream of [false, true]) {
      const body = { model: "scripted", input: "Hi", stream };
      const { status, text } = await caller.post("/responses", body);
      expect(status).toBeGreaterThanOrEqual(400);
      expect(text).not.toContain(promptMark);
      const chat = await caller.post("/chat/completions", { model: "legacy", messages, stream });
      expect(chat.text).not.toContain(promptMark);
    }
  });

  test("in a failure after output", async () => {
    const failed = { status: "failed", error: { code: "server_error", message: developerPrompt } };
    world.play({
      kind: "events",
      events: [
        { type: "response.created", response: { id: "r", instructions: developerPrompt } },
        { type: "response.output_text.delta", delta: "Hel" },
        { type: "response.failed", response: { ...failed, instructions: developerPrompt } },
      ],
    });
    const events = await caller.stream("/responses", { model: "scripted", input: "Hi" });
    expect(events.at(-2)?.name).toBe("response.failed");
    expect(JSON.stringify(events)).not.toContain(promptMark);
  });

  test("in what is published", async () => {
    const root = new URL(world.baseUrl).origin;
    const metrics = world.opsUrl === undefined ? [] : [`${world.opsUrl}/metrics`];
    for (const url of [...metrics, `${root}/openapi.json`, `${root}/readyz`]) {
      expect(await (await fetch(url)).text()).not.toContain(promptMark);
    }
    expect((await caller.get("/models")).text).not.toContain(promptMark);
    expect((await caller.get("/models/own-prompt")).text).not.toContain(promptMark);
  });
});

describe("the log", () => {
  ownWorldOnly();
  test("has a line for every request, and none of a caller's words or keys", async () => {
    const body = { model: "scripted", input: "CALLERS-WORDS", instructions: "CALLERS-WORDS" };
    for (const behaviour of [
      { kind: "ok" },
      { kind: "ok", break: { how: "destroy", after: 1 } },
      { kind: "status", status: 500 },
      { kind: "garbage" },
      { kind: "ok", usage: { input_tokens: -1 } },
    ] as const) {
      world.play(behaviour);
      await caller.post("/responses?secret=QUERY-WORDS", body);
      await caller.post("/responses", { ...body, stream: true });
      await caller.post("/chat/completions", { model: "legacy", messages });
    }
    await caller.post("/responses", { ...body, model: "CALLERS-WORDS" });
    // The lines of another process arrive a moment later.
    const requests = await until("the line of the last request", () => {
      const lines = world.log.map((line) => JSON.parse(line));
      const told = lines.filter(({ msg }) => msg === "request");
      return told.at(-1)?.status === 400 ? told : undefined;
    });
    expect(requests.length).toBeGreaterThan(10);
    expect(requests.at(-1)).toMatchObject({
      requestId: expect.any(String),
      route: "/v1/responses",
      status: expect.any(Number),
      durationMs: expect.any(Number),
      accountId: caller.accountId,
    });
    const log = world.log.join("");
    const secret = [promptMark, "CALLERS-WORDS", "QUERY-WORDS", "UPSTREAM SECRET", caller.key];
    for (const word of [...secret, "up-key-5f2c9d", "Hello from"]) expect(log).not.toContain(word);
  });
});
