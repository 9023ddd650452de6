import { afterAll, expect, test } from "vitest";
import { ownWorldOnly, startWorld } from "../e2e/world.ts";

ownWorldOnly();
const world = await startWorld();
afterAll(() => world[Symbol.asyncDispose]());

const names = { prompt_cache_key: "report", safety_identifier: "anna", user: "anna" };
const routes = [
  ["/responses", { model: "scripted", input: "Hi" }],
  ["/responses/compact", { model: "scripted", input: "Hi" }],
  ["/chat/completions", { model: "scripted", messages: [{ role: "user", content: "Hi" }] }],
  ["/chat/completions", { model: "legacy", messages: [{ role: "user", content: "Hi" }] }],
] as const;

test.for(routes)(
  "names of users and caches are an account's own upstream: %s %j",
  async ([path, body]) => {
    const [one, two] = [await world.caller(), await world.caller()];
    const sent = async (caller: typeof one, asked: object) => {
      const seen = world.play();
      const answer = await caller.post(path, { ...body, ...asked });
      expect(answer.status).toBe(200);
      const { prompt_cache_key, safety_identifier, user } = seen[0]?.body ?? {};
      return { answer, up: [prompt_cache_key, safety_identifier, user] };
    };
    const first = await sent(one, names);
    for (const name of first.up) expect(name).toMatch(/^[\w-]{43}$/);
    expect((await sent(one, names)).up).toEqual(first.up);
    const others = await sent(two, names);
    for (const [at, name] of others.up.entries()) expect(name).not.toBe(first.up[at]);
    // Another account cannot use a name that was sent upstream for one account.
    const guessed = await sent(two, { prompt_cache_key: first.up[0] });
    expect(guessed.up[0]).not.toBe(first.up[0]);
    if (path === "/responses") expect(first.answer.json).toMatchObject(names);
  },
);
