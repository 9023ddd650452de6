import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { creditsOf, startMediaWorld } from "../e2e/media-world.ts";
import { isOwnWorld, startWorld } from "../e2e/world.ts";
import { formAsked, playForm } from "../support/forms/form.ts";
import { answerForms } from "../support/forms/index.ts";

const run = promisify(execFile);
/** A Python that has the client. By default the one on the path. */
const python = process.env.PYTHON ?? "python3";
const script = fileURLToPath(new URL("openai_client.py", import.meta.url));
const formsScript = fileURLToPath(new URL("openai_forms_client.py", import.meta.url));
const modelOf = { chat: "legacy", responses: "scripted" } as const;
const mediaScript = fileURLToPath(new URL("openai_media_client.py", import.meta.url));
const why = await run(python, ["-c", "import openai"]).then(
  () => undefined,
  () => `needs \`${python} -c "import openai"\` to work (pip install openai; PYTHON names another)`,
);
if (why !== undefined) process.stderr.write(`skipped: the Python client ${why}\n`);
const world = why === undefined ? await startWorld() : undefined;
afterAll(() => world?.[Symbol.asyncDispose]());

test("the official Python client, unmodified", async ({ skip }) => {
  if (!world) return skip(why);
  const caller = await world.caller();
  const { stdout } = await run(python, [script, world.baseUrl, caller.key]);
  const { costs, ...seen } = JSON.parse(stdout);
  const { json } = await caller.get("/requests?limit=100");
  const charged = json.data.map((one: { costUsdMicros: number }) => one.costUsdMicros);
  expect(Object.keys(costs)).toEqual(["create", "stream", "chat", "chat_stream"]);
  for (const [cost, costUsdMicros] of Object.values<number[]>(costs)) {
    expect(charged).toContain(costUsdMicros);
    expect(cost).toBe((costUsdMicros ?? 0) / 1_000_000);
  }
  expect(seen).toEqual({
    create: "hello",
    stream: ["good day", "response.completed"],
    helper: true,
    tool: ["get_weather", true, true],
    compact: true,
    chat: "hello",
    chat_stream: ["hello", 1],
    models: true,
    errors: {
      key: ["AuthenticationError", 401, "invalid_api_key"],
      model: ["BadRequestError", 400, "model_not_found"],
      n: ["BadRequestError", 400, "unsupported_parameter"],
    },
    image: true,
  });
});

test("the official Python client's media calls, unmodified", async ({ skip }) => {
  if (why !== undefined) return skip(why);
  skip(!isOwnWorld, "needs an upstream and an operator of its own");
  await using media = await startMediaWorld();
  const folder = await mkdtemp(join(tmpdir(), "genmesh-python-"));
  try {
    const picture = join(folder, "picture.png");
    await writeFile(picture, media.png);
    const caller = await media.world.caller({ credits: 100n });
    const vectors = { data: [{ index: 0, embedding: [0.5, -1] }], usage: { prompt_tokens: 3 } };
    media.media.always("POST /embeddings", { kind: "json", body: vectors });
    const said = { text: "Hi, you.", usage: { type: "duration", seconds: 0.06 } };
    media.media.always("POST /audio/transcriptions", { kind: "json", body: said });
    const { stdout } = await run(python, [mediaScript, media.world.baseUrl, caller.key, picture]);
    expect(JSON.parse(stdout)).toEqual({
      generate: ["PNG"],
      prefer: ["PNG", "PNG"],
      url: [200, 401],
      edit: ["PNG"],
      edit_two: true,
      speech: true,
      speech_streamed: true,
      speech_events: [["speech.audio.delta", "speech.audio.done"], true],
      speech_wav: ["RIFF", "audio/wav"],
      embeddings: [0.5, -1],
      transcription: "Hi, you.",
      errors: {
        quality: ["BadRequestError", 400, "unsupported_parameter"],
        format: ["BadRequestError", 400, "unsupported_parameter"],
      },
      retried: [2, "true"],
    });
    const { available, reserved } = await creditsOf(caller);
    expect([available, reserved]).toEqual([100 - 7, 0]);
    // Five speeches, the tokens of the embeddings, and the seconds of the transcription.
    expect(await caller.settled()).toMatchObject({ monthSpend: 5 * 20 + 3 + 2_040 });
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("the official Python client builds whole answers of other servers' forms", async ({
  skip,
}) => {
  if (!world) return skip(why);
  skip(!isOwnWorld, "needs an upstream and an operator of its own");
  world.play((seen) => {
    const form = formAsked(answerForms, seen);
    return form ? playForm(form, seen) : { kind: "status", status: 400 };
  });
  const caller = await world.caller({ usdMicros: 1_000_000_000n });
  const asked = answerForms.map(({ name, upstream }) => [name, modelOf[upstream]]);
  const args = [formsScript, world.baseUrl, caller.key, JSON.stringify(asked)];
  const { stdout } = await run(python, args);
  const built = answerForms.map(({ name, upstream, says }) => {
    const { text, calls } = says;
    const chat = { chat: says, chat_stream: says };
    const responses = { responses: { text, calls }, responses_stream: { text, calls } };
    return [name, upstream === "chat" ? chat : { ...chat, ...responses }];
  });
  expect(JSON.parse(stdout)).toEqual(Object.fromEntries(built));
});
