import { readFileSync } from "node:fs";
import OpenAI, { NotFoundError } from "openai";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type EdgeWorld, startEdge } from "./world.ts";

let edge: EdgeWorld;
let client: OpenAI;
beforeAll(async () => {
  edge = await startEdge({});
  client = new OpenAI({
    baseURL: `http://127.0.0.1:${edge.port}/v1`,
    apiKey: edge.key,
    maxRetries: 0,
  });
});
afterAll(() => edge[Symbol.asyncDispose]());

const page = readFileSync(new URL("../../docs/openai-sdk.md", import.meta.url), "utf8");
const [, table = ""] = /^What of OpenAI's API is not here:\n\n(.*?)\n\n/ms.exec(page) ?? [];

test.each<[shown: string, advice: RegExp, call: () => Promise<unknown>]>([
  ["`/videos`", /POST \/videos\/generations/, () => client.videos.create({ prompt: "waves" })],
  ["`/videos/{id}`", /GET \/videos\/generations\/\{id\}/, () => client.videos.retrieve("video_1")],
  ["`/responses/{id}`", /not stored/, () => client.responses.retrieve("resp_1")],
  [
    "`/conversations`",
    /whole conversation to POST \/responses/,
    () => client.conversations.create(),
  ],
  ["`/chat/completions/{id}`", /not stored/, () => client.chat.completions.retrieve("chatcmpl-1")],
  [
    "`/completions`",
    /POST \/chat\/completions/,
    () => client.completions.create({ model: "chat-1", prompt: "Hi" }),
  ],
  [
    "`/images/variations`",
    /POST \/images\/edits/,
    () => client.post("/images/variations", { body: {} }),
  ],
  [
    "`/audio/translations`",
    /POST \/audio\/transcriptions/,
    () => client.post("/audio/translations", { body: {} }),
  ],
  ["`batches`", /openapi\.json lists all paths/, () => client.batches.list()],
])("%s is an unknown route that says what to use, and stands in the table", async (...row) => {
  const [shown, advice, call] = row;
  const error = await call().then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(NotFoundError);
  expect(error).toMatchObject({ code: "unknown_route", message: expect.stringMatching(advice) });
  expect(table).toContain(shown);
});
