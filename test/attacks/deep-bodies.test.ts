import { afterAll, expect, test } from "vitest";
import { refusalOf } from "../e2e/caller.ts";
import { startMediaWorld } from "../e2e/media-world.ts";
import { ownWorldOnly } from "../e2e/world.ts";

const { world, ...rest } = await startMediaWorld();
afterAll(() => rest[Symbol.asyncDispose]());
ownWorldOnly();

const caller = await world.caller();

/** A valid body of each route that takes JSON and generates, without its last brace. */
const routes: [path: string, body: string][] = [
  ["/responses", '{"model":"scripted","input":"hi"'],
  ["/responses/compact", '{"model":"scripted","input":"hi"'],
  ["/responses/input_tokens", '{"model":"scripted","input":"hi"'],
  ["/chat/completions", '{"model":"scripted","messages":[{"role":"user","content":"hi"}]'],
  ["/embeddings", '{"model":"vectors","input":"hi"'],
  ["/images/generations", '{"model":"scripted-image","prompt":"x"'],
  ["/videos/generations", '{"model":"text-only","prompt":"x"'],
  ["/music/generations", '{"model":"music-1","mode":"instrumental","title":"x"'],
  ["/speech/generations", '{"model":"scripted-speech","input":"hi","voice":"alloy"'],
  ["/audio/speech", '{"model":"scripted-speech","input":"hi","voice":"alloy"'],
];

const levels = [1_100, 5_000, 10_000, 20_000, 60_000];

/** A value that is nested `depth` deep, in lists or in objects. */
const nested: [name: string, of: (depth: number) => string][] = [
  ["lists", (depth) => `${"[".repeat(depth)}${"]".repeat(depth)}`],
  ["objects", (depth) => `${'{"a":'.repeat(depth)}0${"}".repeat(depth)}`],
];

test.each(
  routes.flatMap(([path, body]) => nested.map(([name, of]) => [path, name, body, of] as const)),
)("what is nested too deep is no JSON, of any size: %s, %s", async (path, _, body, of) => {
  for (const depth of levels) {
    for (const key of [undefined, `deep-${depth}`]) {
      const answer = await fetch(`${caller.baseUrl}${path}`, {
        method: "POST",
        body: `${body},"x":${of(depth)}}`,
        headers: {
          authorization: `Bearer ${caller.key}`,
          "content-type": "application/json",
          ...(key ? { "idempotency-key": key } : {}),
        },
      });
      const told = refusalOf({ status: answer.status, json: await answer.json() });
      expect(told, `${depth} levels, ${key}`).toBe("400 invalid_request_error invalid_json null");
    }
  }
});
