import type { ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Caller } from "../e2e/caller.ts";
import { chat } from "../e2e/catalog.ts";
import { ownWorldOnly, startWorld, type World } from "../e2e/world.ts";
import { openRaw } from "../edge/raw.ts";
import { until } from "../support/until.ts";

/**
 * Where the catalog has a price for it, time without output is charged to a caller that leaves before the upstream's usage. These callers
 * try to avoid that: genmesh does not wait for the upstream in that time, or another caller leaves.
 */

ownWorldOnly();

let world: World;
beforeAll(async () => {
  world = await startWorld({
    catalog: (usual) => ({
      ...usual,
      upstreams: {
        ...usual.upstreams,
        boundless: { ...usual.upstreams.main, outputLimit: "none" },
      },
      models: [
        ...usual.models,
        chat("thinker", { hiddenTokensPerSecond }),
        chat("boundless", { upstream: "boundless", hiddenTokensPerSecond }),
      ],
    }),
  });
});
afterAll(() => world[Symbol.asyncDispose]());

/** The catalog's value for these models. */
const hiddenTokensPerSecond = 200;
/** Milliseconds of the model's hidden reasoning. The real time is charged, so the upstream takes it. */
const thoughtMs = 3_000;
/** The price of the reasoning in USD micros. A token of output costs 4. */
const thought = (thoughtMs / 1_000) * hiddenTokensPerSecond * 4;

/** Writes an event. Answers whether its reader still listens. */
function say(response: ServerResponse, event: Record<string, unknown>): boolean {
  if (response.destroyed) return false;
  response.write(`data: ${JSON.stringify(event)}\n\n`);
  return true;
}

function begin(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  const made = {
    id: "resp_up",
    object: "response",
    created_at: 1,
    status: "in_progress",
    output: [],
  };
  say(response, { type: "response.created", response: made });
}

function delta(text: string, index: number, logprobs: unknown[] = []) {
  const place = { item_id: `msg_${index}`, output_index: index, content_index: 0 };
  return { type: "response.output_text.delta", ...place, delta: text, logprobs };
}

function itemDone(text: string, index: number) {
  const content = [{ type: "output_text", text, annotations: [] }];
  const item = {
    id: `msg_${index}`,
    type: "message",
    role: "assistant",
    status: "completed",
    content,
  };
  return { type: "response.output_item.done", output_index: index, item };
}

/** The bytes of a streamed request for the gateway at `baseUrl`. */
function requestOf({ baseUrl, key }: Pick<Caller, "baseUrl" | "key">, input: string): string {
  const { hostname, pathname } = new URL(baseUrl);
  const body = JSON.stringify({ model: "thinker", input, stream: true });
  const head = [
    `POST ${pathname}/responses HTTP/1.1`,
    ...[`host: ${hostname}`, `authorization: Bearer ${key}`, "content-type: application/json"],
    `content-length: ${Buffer.byteLength(body)}`,
  ];
  return `${head.join("\r\n")}\r\n\r\n${body}`;
}

describe("what a model thinks while its caller takes nothing", () => {
  test("is charged to a caller that reads on behind it and leaves", async () => {
    const caller = await world.caller();
    const held = Promise.withResolvers<void>();
    // Twenty alternatives with each token. 64 KB of them fill the buffer that waits behind another answer.
    const alternatives = Array.from({ length: 20 }, () => ({ token: "x".repeat(60), logprob: -1 }));
    world.play(({ body }) => ({
      kind: "custom",
      async handle(_, response) {
        begin(response);
        if (body.input === "first") {
          await held.promise;
          say(response, {
            type: "response.completed",
            response: { status: "completed", output: [] },
          });
          response.end();
          return;
        }
        const token = [{ token: " a", logprob: -1, top_logprobs: alternatives }];
        for (let i = 0; i < 40; i++) say(response, delta(" a", 0, token));
        say(response, itemDone(" a".repeat(40), 0));
        await delay(thoughtMs);
        held.resolve();
        while (say(response, delta(" sea", 1))) await delay(50);
      },
    }));
    // On one connection the second request's answer waits behind the first's.
    const raw = await openRaw(Number(new URL(caller.baseUrl).port));
    for (const input of ["first", "second"]) raw.send(requestOf(caller, input));
    await raw.until((received) => received.includes(" sea"));
    raw[Symbol.dispose]();
    const { available } = await caller.settled();
    expect(10_000_000 - available).toBeGreaterThanOrEqual(thought * 0.9);
  });
});

describe("what a model thought before it was cut at its caller's bound", () => {
  test("costs nothing beside the bound, for it did not leave", async () => {
    const caller = await world.caller();
    world.play({
      kind: "custom",
      async handle(_, response) {
        begin(response);
        await delay(thoughtMs);
        while (say(response, delta(" sea", 0))) await delay(10);
      },
    });
    const asked = { model: "boundless", input: "Hi", max_output_tokens: 5 };
    const events = await caller.stream("/responses", asked);
    expect(events.map(({ data }) => data).join("")).toContain("response.incomplete");
    const { available } = await caller.settled();
    expect(10_000_000 - available).toBeGreaterThanOrEqual(5 * 4);
    expect(10_000_000 - available).toBeLessThan(100);
    await until("its closing", async () => world.upstream.openConnections() === 0);
  });
});
