import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { slowness } from "../support/reference-machine.ts";
import { startWatched } from "../support/watched-process.ts";

/** Milliseconds of the loop's CPU time for which one request may delay the others at most. */
const mostMs = 50;

const catalog = parse(await readFile("deploy/catalog.yaml", "utf8"));

test("no first request that needs a thread, the tokenizer or a renderer keeps the event loop", {
  timeout: 240_000,
}, async () => {
  await using mesh = await startWatched(catalog);
  const { key } = await mesh.account();
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  // The time of the start belongs to no request.
  await fetch(`${mesh.baseUrl}/models`, { headers });
  await mesh.worstDelayMs();
  const asked = {
    responses: { model: "chat-1", input: "hello" },
    "speech/generations": { model: "speech-1", voice: "alloy", input: "hello" },
    "images/generations": { model: "image-1", prompt: "a lake" },
  };
  for (const [path, body] of Object.entries(asked)) {
    const init = { method: "POST", headers, body: JSON.stringify(body) };
    const answer = await fetch(`${mesh.baseUrl}/${path}`, init);
    expect(answer.ok, await answer.text()).toBe(true);
    expect(await mesh.worstDelayMs(), path).toBeLessThan(mostMs * slowness());
  }
});
