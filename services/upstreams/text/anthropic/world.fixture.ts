// A double of Anthropic, and drivers that ask it, for the tests of this folder.

import { afterEach, beforeEach, expect } from "vitest";
import type { JsonObject } from "#kit/base/json.ts";
import { testRequest } from "../../../../test/support/text-requests.ts";
import { startUpstreamWorld, type UpstreamWorld } from "../../../../test/support/upstream-world.ts";
import {
  type AnthropicDouble,
  type Made,
  startAnthropic,
} from "../../../../test/support/upstreams/anthropic.ts";
import { usualBetas } from "../../anthropic/capabilities.ts";

/** A double of Anthropic, and drivers that ask it. Each test of a file has its own. */
export interface AnthropicWorld {
  readonly double: AnthropicDouble;
  readonly world: UpstreamWorld;
}

/** Keys of the upstream in the catalog. */
export type Changes = Parameters<UpstreamWorld["at"]>[1];

/** More than any answer of these tests has. */
export const outputBound = { tokens: 4_096, count: async () => 0 };

/** Starts a double before each test of the file, and ends it behind. */
export function eachWithAnthropic(): AnthropicWorld {
  let started: AnthropicWorld | undefined;
  const current = () => started ?? expect.unreachable("no test runs");
  beforeEach(async () => {
    const double = await startAnthropic();
    const secrets = (name: string) => (name === "ANTHROPIC_KEY" ? double.key : undefined);
    started = { double, world: await startUpstreamWorld({ secrets }) };
  });
  afterEach(async () => {
    await started?.world[Symbol.asyncDispose]();
    await started?.double[Symbol.asyncDispose]();
  });
  return {
    get double() {
      return current().double;
    },
    get world() {
      return current().world;
    },
  };
}

/** The double as an upstream of the catalog. */
export function upstreamAt({ double, world }: AnthropicWorld, changes: Changes = {}) {
  const { baseUrl } = double;
  const usual = { baseUrl, apiKeyEnv: "ANTHROPIC_KEY", betas: [...usualBetas] };
  return world.at("ANTHROPIC", { ...usual, ...changes });
}

/** A function, a custom tool, and a function in a namespace. */
export const tools = [
  { type: "function", name: "look" },
  { type: "custom", name: "patch" },
  { type: "namespace", name: "files", tools: [{ type: "function", name: "read" }] },
];

/** A request of a caller of Responses or Chat Completions. */
export function askAt(
  at: AnthropicWorld,
  operation: "responses" | "chat",
  { fields = {}, changes = {} }: { fields?: JsonObject; changes?: Changes } = {},
) {
  return testRequest(operation, [upstreamAt(at, changes)], { fields, outputBound });
}

/** The same answer whole and streamed, as the last whole object. */
export async function bothAt(at: AnthropicWorld, made: Made, fields: JsonObject = {}) {
  const { double, world } = at;
  double.usual = made;
  const whole = await world.json(askAt(at, "responses", { fields }));
  const streamed = await world.stream(askAt(at, "responses", { fields }));
  const last = streamed.data.at(-1);
  const plain = (output: { id?: string }[]) => output.map(({ id: _, ...item }) => item);
  expect(plain(last.response.output)).toEqual(plain(whole.body.output));
  expect(last.response.usage).toEqual(whole.body.usage);
  expect(last.response.status).toBe(whole.body.status);
  expect(last.type).toBe(`response.${whole.body.status}`);
  expect(streamed.events.at(-1)?.usage).toEqual(whole.answer.usage);
  expect(streamed.data.map(({ sequence_number: n }) => n)).toEqual(streamed.data.map((_, n) => n));
  return { whole, streamed, output: plain(whole.body.output) as object[] };
}
