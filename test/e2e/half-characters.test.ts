import { afterAll, expect, test } from "vitest";
import type { Caller } from "./caller.ts";
import { type Document, ended, startMediaWorld } from "./media-world.ts";
import { ownWorldOnly } from "./world.ts";

// A text that was cut within an emoji ends in half a surrogate pair. UTF-8 has no bytes for that.

const { world, media, ...rest } = await startMediaWorld();
afterAll(() => rest[Symbol.asyncDispose]());
ownWorldOnly();

const half = "a fox \ud83e";
const otherHalf = "a fox \ud83d";
const sent = "a fox \ufffd";

/** For each route that takes free text: a body with it, and the status of its answer. */
const routes: [path: string, body: (text: string) => object, status: number][] = [
  ["/responses", (input) => ({ model: "scripted", input }), 200],
  ["/responses/compact", (input) => ({ model: "scripted", input }), 200],
  [
    "/chat/completions",
    (content) => ({ model: "scripted", messages: [{ role: "user", content }] }),
    200,
  ],
  [
    "/chat/completions",
    (content) => ({ model: "legacy", messages: [{ role: "user", content }] }),
    200,
  ],
  ["/embeddings", (input) => ({ model: "scripted-vectors", input }), 200],
  ["/images/generations", (prompt) => ({ model: "scripted-image", prompt }), 202],
  ["/videos/generations", (prompt) => ({ model: "text-only", prompt }), 202],
  ["/music/generations", (title) => ({ model: "music-1", mode: "instrumental", title }), 202],
  ["/speech/generations", (input) => ({ model: "scripted-speech", input, voice: "alloy" }), 200],
  ["/audio/speech", (input) => ({ model: "scripted-speech", input, voice: "alloy" }), 200],
];

const begin = () => world.caller({ usdMicros: 10_000_000n, credits: 1_000n });

test.each(routes)("%s takes half a character, with a key and without", async (path, of, status) => {
  const caller = await begin();
  world.play();
  // A large body is read in a thread.
  for (const more of [{}, { user: `${half} ${"x".repeat(150_000)}` }]) {
    const post = (text: string, idempotencyKey?: string) =>
      caller.post(path, { ...of(text), ...more }, idempotencyKey ? { idempotencyKey } : {});
    const key = `key of ${Object.keys(more)}`;
    expect((await post(half)).status).toBe(status);
    expect((await post(half, key)).status).toBe(status);
    const again = await post(half, key);
    expect(again.status).toBe(status);
    expect(again.headers.get("idempotency-replayed")).toBe("true");
    // Different halves are different texts.
    for (const other of [otherHalf, sent, "a fox \\ud83e"]) {
      const reused = await post(other, key);
      expect([other, reused.json.error.code]).toEqual([other, "idempotency_key_reused"]);
    }
  }
});

test("upstream gets U+FFFD in its place, in texts and in names", async () => {
  const caller = await begin();
  const seen = world.play();
  const parameters = { type: "object", properties: { [half]: { type: "string" } } };
  const tools = [{ type: "function", name: "f", parameters }];
  await caller.post("/responses", { model: "scripted", input: half, tools });
  expect(seen[0]?.body.input).toBe(sent);
  expect(Object.keys(seen[0]?.body.tools[0].parameters.properties)).toEqual([sent]);
  const whole = "a fox \ud83e\udd8a";
  await caller.post("/responses", { model: "scripted", input: whole, instructions: half });
  expect(seen[1]?.body.input).toBe(whole);
  media.requests.length = 0;
  await finished(caller, "/images/generations", { model: "scripted-image", prompt: half });
  expect(media.seen("POST /images/generations")[0]?.body.prompt).toBe(sent);
});

test("a job and its list show what was asked for", async () => {
  const caller = await begin();
  const metadata = { [half]: half };
  const body = { model: "scripted-image", prompt: half, metadata };
  const job = await finished(caller, "/images/generations", body);
  expect(job.metadata).toEqual({ [sent]: sent });
  expect((await caller.get("/jobs")).json.data[0].metadata).toEqual({ [sent]: sent });
});

async function finished(caller: Caller, path: string, body: object): Promise<Document> {
  const { status, json } = await caller.post(path, body);
  expect(status).toBe(202);
  const job = await ended(caller, json);
  expect(job).toMatchObject({ status: "completed" });
  return job;
}
