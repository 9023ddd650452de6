import { describe, expect, test } from "vitest";
import {
  type MediaOutputs,
  startScriptedMediaUpstream,
} from "../../test/support/scripted-media-upstream.ts";
import { startFal } from "../../test/support/upstreams/fal.ts";
import { startReplicate } from "../../test/support/upstreams/replicate.ts";
import { falCalls, replicateCalls } from "./by-template/calls.fixture.ts";
import { generateLimits } from "./media/limits.ts";
import type { GenerationTask } from "./media/port.ts";
import { sampleMp3, sampleMp4, samplePng } from "./media/samples.fixture.ts";
import {
  createWorld,
  imageRequest,
  musicRequest,
  reference,
  speechTask,
  upstreamAt,
  upstreamKey,
  videoRequest,
} from "./media/world.fixture.ts";

const mib = 1024 * 1024;
const requests = {
  image: imageRequest,
  video: { ...videoRequest, mode: "i2v" } as const,
  music: musicRequest,
};
type Kind = keyof typeof requests;
const types = { image: "image/png", video: "video/mp4", music: "audio/mpeg" };

async function outputsOf(): Promise<MediaOutputs> {
  return { images: [await samplePng()], video: sampleMp4(), sound: sampleMp3() };
}

/** A file of each kind. A large one has more bytes than are parsed of an answer. */
async function fileOf(kind: Kind, isLarge: boolean): Promise<Buffer> {
  // Bytes behind an image's end are allowed.
  if (kind === "image")
    return Buffer.concat([await samplePng(), Buffer.alloc(isLarge ? 6 * mib : 0)]);
  if (kind === "video") return sampleMp4({ frameBytes: isLarge ? 100_000 : 200 });
  return sampleMp3(isLarge ? 400 : 2);
}

interface Server extends AsyncDisposable {
  asked: Pick<GenerationTask, "upstream" | "request"> & Partial<GenerationTask>;
}
type Start = (kind: Kind, texts: readonly string[]) => Promise<Server>;

async function called(kind: Kind) {
  const png = reference(await samplePng());
  return { request: requests[kind], references: kind === "video" ? [png, png] : [] };
}

/** Servers whose answers have these texts in place of their outputs. */
const servers: Record<string, Start> = {
  async fal(kind, texts) {
    const fal = await startFal({ key: upstreamKey });
    const files = texts.map((url) => ({ url, content_type: "application/octet-stream" }));
    const output = {
      image: { images: files },
      video: { video: files[0] },
      music: { audio: files[0] },
    };
    fal.plan({ output: () => output[kind] });
    const upstream = upstreamAt(fal.origin, "FAL");
    const asked = { upstream, ...(await called(kind)), call: falCalls[kind] };
    return { asked, [Symbol.asyncDispose]: fal[Symbol.asyncDispose] };
  },
  async "Replicate, a list"(kind, texts) {
    const replicate = await startReplicate({ key: upstreamKey });
    replicate.plan({ output: () => texts });
    const upstream = upstreamAt(replicate.baseUrl, "REPLICATE");
    const asked = { upstream, ...(await called(kind)), call: replicateCalls[kind] };
    return { asked, [Symbol.asyncDispose]: replicate[Symbol.asyncDispose] };
  },
  async "Replicate, one"(kind, [text]) {
    const replicate = await startReplicate({ key: upstreamKey });
    replicate.plan({ output: () => text });
    const upstream = upstreamAt(replicate.baseUrl, "REPLICATE");
    const asked = { upstream, ...(await called(kind)), call: replicateCalls[kind] };
    return { asked, [Symbol.asyncDispose]: replicate[Symbol.asyncDispose] };
  },
  async "OpenAI, b64_json"(_kind, texts) {
    const openai = await startScriptedMediaUpstream("openai", await outputsOf());
    const data = texts.map((text) => ({ b64_json: text }));
    openai.always("POST /images/generations", { kind: "json", body: { created: 1, data } });
    const asked = { upstream: upstreamAt(openai.baseUrl), request: imageRequest };
    return { asked, [Symbol.asyncDispose]: openai[Symbol.asyncDispose] };
  },
  async "OpenAI, url"(_kind, texts) {
    const openai = await startScriptedMediaUpstream("openai", await outputsOf());
    const data = texts.map((url) => ({ url }));
    openai.always("POST /images/generations", { kind: "json", body: { created: 1, data } });
    const asked = { upstream: upstreamAt(openai.baseUrl), request: imageRequest };
    return { asked, [Symbol.asyncDispose]: openai[Symbol.asyncDispose] };
  },
  async genmesh(kind, texts) {
    const peer = await startScriptedMediaUpstream("genmesh", await outputsOf());
    const [area, field] = {
      image: ["images", "images"],
      video: ["videos", "videos"],
      music: ["music", "clips"],
    }[kind] as [string, string];
    const items = texts.map((url, index) => ({ id: `file_${index}`, url }));
    const body = { id: "job_1", status: "completed", terminal: true, [field]: items };
    peer.always(`GET /${area}/generations/*`, { kind: "json", body });
    const asked = { upstream: upstreamAt(peer.baseUrl, "GENMESH"), request: requests[kind] };
    return { asked, [Symbol.asyncDispose]: peer[Symbol.asyncDispose] };
  },
};

const cases = Object.keys(servers).flatMap((name) => {
  const kinds: Kind[] = name.startsWith("OpenAI") ? ["image"] : ["image", "video", "music"];
  return kinds.map((kind) => [name, kind] as const);
});
const open = (name: string, kind: Kind, texts: readonly string[]) =>
  (servers[name] as Start)(kind, texts);
const uriOf = (bytes: Buffer, type: string) => `data:${type};base64,${bytes.toString("base64")}`;

describe.each(cases)("a data URI in an answer of %s: %s", (name, kind) => {
  async function made(text: string, bytes: Buffer) {
    await using server = await open(name, kind, [text]);
    await using world = await createWorld();
    const outputs = await world.upstreams.generate(world.task(server.asked).task);
    expect(outputs).toMatchObject([{ mimeType: types[kind], sizeBytes: bytes.length }]);
    const stored = await world.stored(outputs[0]?.blobKey ?? "");
    expect(Buffer.compare(stored, bytes)).toBe(0);
    expect(world.logLines.join("")).not.toContain("base64");
  }

  test("is the file", async () => {
    const bytes = await fileOf(kind, false);
    await made(uriOf(bytes, types[kind]), bytes);
  });

  test.runIf(name !== "genmesh")("is the file, however large", async () => {
    const bytes = await fileOf(kind, true);
    await made(uriOf(bytes, types[kind]), bytes);
  });

  test("is what its bytes show, whatever it says of its type", async () => {
    const bytes = await fileOf(kind, false);
    for (const type of ["text/plain", "image/jpeg", "video/webm", "audio/wav", "", "nonsense"]) {
      await made(uriOf(bytes, type), bytes);
    }
  });

  test("is read as browsers read one", async () => {
    const bytes = await fileOf(kind, false);
    const digits = bytes.toString("base64");
    const type = types[kind];
    for (const uri of [
      `DATA:${type};name=fox.bin;Base64,${digits}`,
      ` data: ${type};base64,${digits.replace(/.{76}/g, "$&\r\n")}`,
      `data:${type};base64,${bytes.toString("base64url")}`,
      `data:${type};base64,${encodeURIComponent(digits)}`,
    ]) {
      await made(uri, bytes);
    }
  });

  test("of another kind, of none, or of no base64 fails the job", async () => {
    const png = await samplePng();
    const other = kind === "image" ? sampleMp4() : png;
    const texts = [uriOf(other, types[kind]), uriOf(Buffer.from("words"), types[kind])];
    for (const text of [...texts, "data:image/png;base64,", "data:image/png,%89PNG"]) {
      await using server = await open(name, kind, [text]);
      await using world = await createWorld();
      const work = world.upstreams.generate(world.task(server.asked).task);
      await expect(work).rejects.toMatchObject({ fault: "failed" });
      expect(await world.storedKeys()).toEqual([]);
    }
  });
});

test.each(Object.keys(servers).filter((name) => name !== "Replicate, one"))(
  "pictures of %s keep their order where some are in the answer and others are named",
  async (name) => {
    const [one, two] = [await samplePng(64, 48), await samplePng(80, 40)];
    await using files = await startScriptedMediaUpstream("openai", await outputsOf());
    files.always("GET /made/*", {
      kind: "custom",
      handle: (_seen, response) => void response.end(one),
    });
    const url = `${files.baseUrl}/made/image_1.png`;
    await using server = await open(name, "image", [url, uriOf(two, "image/png"), url]);
    await using world = await createWorld();
    const request = { ...imageRequest, count: 3 };
    // A name in b64_json is no file.
    const work = world.upstreams.generate(world.task({ ...server.asked, request }).task);
    if (name === "OpenAI, b64_json") return expect(work).rejects.toMatchObject({ fault: "failed" });
    expect((await work).map(({ width }) => width)).toEqual([64, 80, 64]);
  },
);

test.each(["fal", "Replicate, a list", "OpenAI, b64_json"])(
  "more than a file of its kind may have fails: %s",
  async (name) => {
    const bytes = Buffer.concat([await samplePng(), Buffer.alloc(generateLimits.imageBytes)]);
    const text = uriOf(bytes, "image/png");
    await using server = await open(name, "image", [text]);
    await using world = await createWorld();
    const work = world.upstreams.generate(world.task(server.asked).task);
    await expect(work).rejects.toMatchObject({ fault: "failed" });
    expect(await world.storedKeys()).toEqual([]);
  },
);

test("a speech of another deployment may be in its answer", async () => {
  const sound = sampleMp3();
  await using peer = await startScriptedMediaUpstream("genmesh", await outputsOf());
  await using world = await createWorld();
  const body = { id: "speech_1", audio: { id: "file_1", url: uriOf(sound, "audio/wav") } };
  peer.always("POST /speech/generations", { kind: "json", body });
  const spoken = await world.upstreams.speak(speechTask([upstreamAt(peer.baseUrl, "GENMESH")]));
  expect(Buffer.compare(spoken.bytes, sound)).toBe(0);
});

test("a data URI is no place that a file is redirected to", async () => {
  await using openai = await startScriptedMediaUpstream("openai", await outputsOf());
  await using world = await createWorld();
  openai.always("GET /videos/*/content", {
    kind: "custom",
    handle(_seen, response) {
      response.writeHead(302, { location: uriOf(Buffer.from("film"), "video/mp4") });
      response.end();
    },
  });
  const asked = { upstream: upstreamAt(openai.baseUrl), request: videoRequest };
  const work = world.upstreams.generate(world.task(asked).task);
  await expect(work).rejects.toMatchObject({ fault: "failed" });
});
