import OpenAI, { toFile } from "openai";
import { Stream } from "openai/core/streaming";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type SoundFormat, soundFormats, soundTypes } from "#kit/sound/formats.ts";
import { sampleSound } from "../../services/upstreams/media/samples.fixture.ts";
import type { Caller } from "../e2e/caller.ts";
import { creditsOf, download, ended, startMediaWorld } from "../e2e/media-world.ts";
import { isOwnWorld, ownWorldOnly } from "../e2e/world.ts";
import { bytesAnswer } from "../support/scripted-media-upstream.ts";

const { world, media, png, ...rest } = await startMediaWorld();
afterAll(() => rest[Symbol.asyncDispose]());
ownWorldOnly();

const generations = "POST /images/generations";
const edits = "POST /images/edits";
const model = "scripted-image";
let caller: Caller;
let client: OpenAI;
beforeAll(async () => {
  if (!isOwnWorld) return;
  caller = await world.caller({ credits: 100n });
  client = clientOf(caller);
});
beforeEach(() => {
  if (!isOwnWorld) return;
  for (const call of [generations, edits]) media.always(call, undefined);
  media.requests.length = 0;
});

/** The unmodified client, without its retries. */
function clientOf({ key }: Caller, more: { defaultHeaders?: Record<string, string> } = {}) {
  return new OpenAI({ baseURL: world.baseUrl, apiKey: key, maxRetries: 0, ...more });
}

/** The client with the name of the header for the key of a request and its retries. */
class SafeToRetry extends OpenAI {
  protected override idempotencyHeader = "Idempotency-Key";
}

const bytesOf = ({ b64_json = "" }: { b64_json?: string | undefined } = {}) =>
  Buffer.from(b64_json, "base64");
const spent = async (before: { available: number }) => {
  const { available, reserved } = await creditsOf(caller);
  return [before.available - available, reserved];
};

describe("client.images.generate", () => {
  test("waits for the job and has its images in base64", async () => {
    const before = await creditsOf(caller);
    const answer = await client.images.generate({
      ...{ model, prompt: "a red boat", n: 2, size: "64x64" as never },
      response_format: "b64_json",
    });
    expect(answer.data?.map((image) => bytesOf(image).equals(png))).toEqual([true, true]);
    expect(answer).toMatchObject({ output_format: "png", size: "64x64", creditsCharged: 2 });
    expect(Math.abs(answer.created - world.now() / 1_000)).toBeLessThan(60);
    expect(await spent(before)).toEqual([2, 0]);
  });

  test("has them by their URLs, which take the same key alone", async () => {
    const response_format = "url";
    const answer = await client.images.generate({ model, prompt: "a boat", response_format });
    const url = answer.data?.[0]?.url ?? "";
    expect((await download(caller, url)).bytes.equals(png)).toBe(true);
    const other = await world.caller();
    expect((await download(other, url)).status).toBe(404);
  });

  test("waits where a default header asks for that", async () => {
    const waiting = clientOf(caller, { defaultHeaders: { Prefer: "wait" } });
    const { data, response } = await waiting.images
      .generate({ model: "small-image", prompt: "a boat", size: "64x64" as never })
      .withResponse();
    expect(bytesOf(data.data?.[0]).subarray(1, 4).toString()).toBe("PNG");
    expect(response.headers.get("preference-applied")).toBe("wait");
  });

  test("is a job where nothing asks to wait", async () => {
    const { response, data } = await client.images
      .generate({ model, prompt: "a boat", quality: "hd" })
      .withResponse();
    expect([response.status, (data as { object?: string }).object]).toEqual([202, "image.job"]);
    await ended(caller, data);
  });

  test.each([
    ["quality", { quality: "hd" }, "unsupported_parameter"],
    ["style", { style: "vivid" }, "unsupported_parameter"],
    ["background", { background: "transparent" }, "unsupported_parameter"],
    ["output_format", { output_format: "webp" }, "unsupported_parameter"],
    ["seed", { seed: 7 }, "unsupported_parameter"],
    ["size", { size: "1x1" }, "unsupported_size"],
    ["n", { n: 11 }, "invalid_value"],
    ["response_format", { response_format: "tiff" }, "invalid_value"],
  ])("refuses by its name what the model does not know: %s", async (param, more, code) => {
    const before = await creditsOf(caller);
    const asked = { model, prompt: "a boat", response_format: "b64_json", ...more } as never;
    await expect(client.images.generate(asked)).rejects.toMatchObject({ status: 400, param, code });
    expect(await spent(before)).toEqual([0, 0]);
    expect(media.requests).toEqual([]);
  });

  test("takes what means the same as nothing", async () => {
    const asked = { quality: "auto", background: "auto", moderation: "auto", user: "u1" } as const;
    const response_format = "url";
    const answer = await client.images.generate({ model, prompt: "a", ...asked, response_format });
    expect(answer.data).toHaveLength(1);
  });

  test("a refused image is an error with its status, costs nothing and is not sent again", async () => {
    const before = await creditsOf(caller);
    media.always(generations, { kind: "status", status: 400, code: "moderation_blocked" });
    const retrying = new OpenAI({ baseURL: world.baseUrl, apiKey: caller.key, maxRetries: 2 });
    const asked = { model, prompt: "a boat", response_format: "b64_json" } as const;
    await expect(retrying.images.generate(asked)).rejects.toMatchObject({
      ...{ status: 400, code: "content_policy_violation" },
      error: { jobId: expect.stringMatching(/^job_/), statusUrl: expect.stringContaining("/job_") },
    });
    media.always(generations, { kind: "status", status: 400, code: "invalid_value" });
    const failed = await retrying.images.generate(asked).catch((error) => error);
    expect(failed).toMatchObject({ status: 502, code: "model_request_failed" });
    expect(failed.headers.get("x-should-retry")).toBe("false");
    expect(media.seen(generations)).toHaveLength(2);
    expect(await spent(before)).toEqual([0, 0]);
  });

  test("too long a wait is 504 with the job, which goes on", async () => {
    const gate = Promise.withResolvers<void>();
    media.next(generations, {
      kind: "custom",
      async handle(_seen, response) {
        await gate.promise;
        response.setHeader("content-type", "application/json");
        response.end(JSON.stringify({ data: [{ b64_json: png.toString("base64") }] }));
      },
    });
    const asked = { model, prompt: "a slow boat", response_format: "url" } as const;
    const late = await client.images
      .generate(asked, { headers: { Prefer: "wait=1" } })
      .catch((error) => error);
    expect(late).toMatchObject({ status: 504, code: "job_not_finished" });
    expect(late.headers.get("x-should-retry")).toBe("false");
    gate.resolve();
    const { statusUrl } = late.error;
    expect(await ended(caller, { statusUrl })).toMatchObject({ status: "completed" });
  });

  test("a retry of the SDK with its own key is the same job, paid once", async () => {
    const before = await creditsOf(caller);
    const lossy = lossyFetch();
    const safe = new SafeToRetry({
      ...{ baseURL: world.baseUrl, apiKey: caller.key, maxRetries: 1 },
      fetch: lossy.fetch,
    });
    const asked = { model, prompt: "a lost boat", response_format: "b64_json" } as const;
    const { data, response } = await safe.images.generate(asked).withResponse();
    expect(bytesOf(data.data?.[0]).equals(png)).toBe(true);
    expect(response.headers.get("idempotency-replayed")).toBe("true");
    expect(lossy.asked()).toBe(2);
    expect(media.seen(generations)).toHaveLength(1);
    expect(await spent(before)).toEqual([1, 0]);
  });
});

describe("client.images.edit", () => {
  const picture = (name: string) => toFile(png, name, { type: "image/png" });

  test("makes an image of one, and of several", async () => {
    const before = await creditsOf(caller);
    const prompt = "the same, at night";
    const one = await client.images.edit({ model, prompt, image: await picture("a.png") });
    expect(bytesOf(one.data?.[0]).equals(png)).toBe(true);
    const image = [await picture("a.png"), await picture("b.png")];
    const two = await client.images.edit({
      ...{ model, prompt, image, n: 2, size: "64x64" as never, response_format: "url" },
    });
    expect(two.data?.map(({ url }) => url?.startsWith(world.baseUrl))).toEqual([true, true]);
    const sent = media.seen(edits);
    expect(sent).toHaveLength(2);
    expect(await spent(before)).toEqual([3, 0]);
  });

  test("refuses what the model does not know, and what is no image", async () => {
    const image = await picture("a.png");
    const refused = (more: object) =>
      client.images
        .edit({ model, prompt: "a boat", image, ...more } as never)
        .catch(({ status, code, param }) => [status, code, param]);
    expect(await refused({ mask: image })).toEqual([400, "unsupported_parameter", "mask"]);
    expect(await refused({ quality: "high" })).toEqual([400, "unsupported_parameter", "quality"]);
    const noImage = await toFile(Buffer.from("no image"), "a.png");
    expect(await refused({ image: noImage })).toEqual([400, "invalid_reference_image", "image"]);
    expect(await refused({ image: [image, image, image] })).toEqual([
      ...[400, "too_many_references"],
      "image",
    ]);
    expect(await refused({ image: [] })).toEqual([400, "missing_required_parameter", "image"]);
    expect(await refused({ model: "none" })).toEqual([400, "model_not_found", "model"]);
    expect(media.requests).toEqual([]);
  });

  test("a key has one edit, and none of the jobs of another route", async () => {
    const before = await creditsOf(caller);
    const edit = async (prompt: string) =>
      client.images.edit(
        { model, prompt, image: await picture("a.png") },
        { headers: { "idempotency-key": "edit-1" } },
      );
    const [first, second] = [await edit("one"), await edit("one")] as { id?: string }[];
    expect(second?.id).toBe(first?.id);
    await expect(edit("another")).rejects.toMatchObject({ code: "idempotency_key_reused" });
    const body = { model, prompt: "one" };
    const job = await caller.post("/images/generations", body, { idempotencyKey: "edit-1" });
    expect([job.status, job.json.id === first?.id]).toEqual([202, false]);
    await ended(caller, job.json);
    expect((await spent(before))[0]).toBe(2);
  });
});

/** A fetch that loses its first answer once that has begun. */
function lossyFetch() {
  let asked = 0;
  const lossy: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    if (++asked > 1) return response;
    await response.body?.cancel();
    throw new TypeError("terminated");
  };
  return { fetch: lossy, asked: () => asked };
}

interface SpeechEvent {
  type: string;
  audio?: string;
}

/** The audio in the events of an answer, as the SDK reads them, and the last event. */
async function* eventsOf(answer: Response): AsyncGenerator<Uint8Array | SpeechEvent> {
  const events = Stream.fromSSEResponse<SpeechEvent>(answer, new AbortController());
  for await (const event of events) {
    if (event.type === "speech.audio.delta") yield Buffer.from(event.audio ?? "", "base64");
    else yield event;
  }
}

async function* bytesIn({ body }: Response): AsyncGenerator<Uint8Array> {
  if (body) yield* body;
}

describe("client.audio.speech.create", () => {
  const speech = "POST /audio/speech";
  const asked = { model: "scripted-speech", input: "Hi, you.", voice: "alloy" } as const;
  const cost = 20;

  test("answers with the bytes, at the price of speech", async () => {
    const speaker = await world.caller();
    const answer = await clientOf(speaker).audio.speech.create({ ...asked, speed: 1.5 });
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      ...{ "content-type": "audio/mpeg", "x-genmesh-cost-usd-micros": String(cost) },
    });
    const bytes = Buffer.from(await answer.arrayBuffer());
    expect(bytes.equals(Buffer.from(media.wording.outputs.sound))).toBe(true);
    expect(media.seen(speech).at(-1)?.body).toMatchObject({ speed: 1.5, voice: "alloy" });
    expect(await speaker.settled()).toMatchObject({ reserved: 0, monthSpend: cost });
  });

  test.each([
    ["response_format", { response_format: "tiff" }, "unsupported_parameter"],
    ["instructions", { instructions: "Whisper." }, "unsupported_parameter"],
    ["stream_format", { stream_format: "websocket" }, "unsupported_parameter"],
    ["voice", { voice: "nobody" }, "unsupported_voice"],
    ["voice", { voice: { id: "nobody" } }, "unsupported_voice"],
    ["speed", { speed: 9 }, "invalid_value"],
  ])("refuses by its name what the model does not offer: %s %j", async (param, more, code) => {
    const work = client.audio.speech.create({ ...asked, ...more } as never);
    await expect(work).rejects.toMatchObject({ status: 400, param, code });
    expect(media.requests).toEqual([]);
  });

  test("is heard while it is spoken, as bytes and as events", async () => {
    const speaker = await world.caller();
    const sound = Buffer.from(media.wording.outputs.sound);
    const half = sound.subarray(0, sound.length / 2);
    for (const stream_format of ["audio", "sse"] as const) {
      const rest = Promise.withResolvers<void>();
      media.next(speech, {
        kind: "custom",
        async handle(_seen, response) {
          response.writeHead(200, { "content-type": "audio/mpeg" });
          response.write(half);
          await rest.promise;
          response.end(sound.subarray(half.length));
        },
      });
      const answer = await clientOf(speaker).audio.speech.create({ ...asked, stream_format });
      let heard = Buffer.alloc(0);
      let last: unknown;
      for await (const piece of stream_format === "sse" ? eventsOf(answer) : bytesIn(answer)) {
        if (piece instanceof Uint8Array) heard = Buffer.concat([heard, piece]);
        else last = piece;
        if (heard.length === half.length) rest.resolve();
      }
      expect(heard.equals(sound)).toBe(true);
      const usage = expect.objectContaining({ characters: 8, costUsdMicros: cost });
      expect(last).toEqual(
        stream_format === "sse" ? { type: "speech.audio.done", usage } : undefined,
      );
    }
    expect(await speaker.settled()).toMatchObject({ reserved: 0, monthSpend: 2 * cost });
  });

  test.each(soundFormats)("has %s where that is asked for, once for a key", async (format) => {
    const speaker = await world.caller();
    const speak = (response_format: SoundFormat) =>
      clientOf(speaker).audio.speech.create(
        { ...asked, response_format },
        { headers: { "idempotency-key": "one" } },
      );
    for (const isReplayed of [false, true]) {
      const answer = await speak(format);
      expect(Object.fromEntries(answer.headers)).toMatchObject({
        ...{ "content-type": soundTypes[format], "x-genmesh-cost-usd-micros": String(cost) },
      });
      expect(answer.headers.has("idempotency-replayed")).toBe(isReplayed);
      const bytes = Buffer.from(await answer.arrayBuffer());
      const sound = format === "mp3" ? media.wording.outputs.sound : sampleSound(format);
      expect(bytes.equals(sound)).toBe(true);
    }
    const other = format === "wav" ? "flac" : "wav";
    await expect(speak(other)).rejects.toMatchObject({ code: "idempotency_key_reused" });
    expect(media.seen(speech)).toMatchObject([{ body: { response_format: format } }]);
    expect(await speaker.settled()).toMatchObject({ reserved: 0, monthSpend: cost });
  });

  test("is made here as MP3, WAV and samples, and as nothing else", async () => {
    const own = { ...asked, model: "speech-1" };
    const { formats } = (await client.models.retrieve(own.model)) as { formats?: string[] };
    expect(formats).toEqual(["mp3", "wav", "pcm"]);
    const bytesOf = async (response_format: "wav" | "pcm") =>
      Buffer.from(await (await client.audio.speech.create({ ...own, response_format })).bytes());
    const [wav, pcm] = [await bytesOf("wav"), await bytesOf("pcm")];
    expect(wav.toString("latin1", 0, 4)).toBe("RIFF");
    expect(wav.subarray(44).equals(pcm)).toBe(true);
    await expect(
      client.audio.speech.create({ ...own, response_format: "flac" }),
    ).rejects.toMatchObject({
      ...{ status: 400, code: "unsupported_parameter", param: "response_format" },
      message: expect.stringContaining("The model's formats are: mp3, wav, pcm."),
    });
  });

  test("of another content than it was asked for is an error that costs nothing", async () => {
    const speaker = await world.caller();
    for (const [format, sound] of [
      ["wav", sampleSound("mp3")],
      ["pcm", sampleSound("wav")],
      ["opus", Buffer.from('{"error":"none"}')],
    ] as const) {
      media.next(speech, bytesAnswer(sound, soundTypes[format]));
      const spoken = clientOf(speaker).audio.speech.create({ ...asked, response_format: format });
      await expect(spoken).rejects.toMatchObject({ status: 502, code: "model_request_failed" });
    }
    expect(await speaker.settled()).toMatchObject({ reserved: 0, monthSpend: 0 });
  });

  test("a retry of the SDK with its own key is paid once", async () => {
    const speaker = await world.caller();
    const lossy = lossyFetch();
    const options = { baseURL: world.baseUrl, apiKey: speaker.key, maxRetries: 1 };
    const safe = new SafeToRetry({ ...options, fetch: lossy.fetch });
    const answer = await safe.audio.speech.create({ ...asked, response_format: "mp3" });
    expect(answer.headers.get("idempotency-replayed")).toBe("true");
    expect((await answer.arrayBuffer()).byteLength).toBeGreaterThan(0);
    expect([lossy.asked(), media.seen(speech).length]).toEqual([2, 1]);
    expect(await speaker.settled()).toMatchObject({ monthSpend: cost });
  });

  test("its keys are not those of the other route, and no upstream's failure costs anything", async () => {
    const speaker = await world.caller();
    const headers = { "idempotency-key": "one" };
    await clientOf(speaker).audio.speech.create(asked, { headers });
    const other = await speaker.post("/speech/generations", asked, { idempotencyKey: "one" });
    expect(other.headers.get("idempotency-replayed")).toBeNull();
    expect(await speaker.settled()).toMatchObject({ monthSpend: 2 * cost });
    media.next(speech, { kind: "status", status: 400, code: "content_policy_violation" });
    const refused = clientOf(speaker).audio.speech.create(asked);
    await expect(refused).rejects.toMatchObject({ status: 400 });
    expect(await speaker.settled()).toMatchObject({ monthSpend: 2 * cost });
  });
});
