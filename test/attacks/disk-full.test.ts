import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ErrorReason, RefusalError } from "#kit/base/errors.ts";
import { sampleMp3, sampleMp4, samplePng } from "../../services/upstreams/media/samples.fixture.ts";
import {
  createWorld,
  imageRequest,
  upstreamAt,
  videoRequest,
} from "../../services/upstreams/media/world.fixture.ts";
import { type RunningMesh, startRunning, tempFolder } from "../host/process.ts";
import { startScriptedMediaUpstream } from "../support/scripted-media-upstream.ts";
import { until } from "../support/until.ts";

let folder: Awaited<ReturnType<typeof tempFolder>>;
/** A file system of 24 MiB. */
let small: string;
let whyNot: string | undefined;

beforeEach(async () => {
  folder = await tempFolder();
  small = join(folder.path, "small");
  mkdirSync(small);
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=24m", "tmpfs", small], { stdio: "pipe" });
    whyNot = undefined;
  } catch (error) {
    whyNot = `a small file system cannot be mounted here: ${(error as Error).message.split("\n")[1]}`;
  }
});
afterEach(async () => {
  if (whyNot === undefined) execFileSync("umount", ["--lazy", small]);
  await folder[Symbol.asyncDispose]();
});

const patience = { withinMs: 60_000, everyMs: 50 };

async function readiness(mesh: RunningMesh): Promise<string> {
  const answer = await fetch(`${mesh.origin}/readyz`);
  return `${answer.status} ${(await answer.text()).trim()}`;
}

/** Writes until the disk is full. Answers a function that frees the room again. */
async function fill(): Promise<() => Promise<void>> {
  const filler = join(small, "filler");
  const full = writeFile(filler, Buffer.alloc(64 * 1024 * 1024));
  await expect(full).rejects.toMatchObject({ code: "ENOSPC" });
  return () => rm(filler);
}

async function think(mesh: RunningMesh): Promise<number> {
  const answer = await fetch(`${mesh.baseUrl}/responses`, {
    method: "POST",
    headers: { authorization: `Bearer ${mesh.bannerKey}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "chat-1", input: "Hello" }),
  });
  await answer.arrayBuffer();
  return answer.status;
}

async function draw(mesh: RunningMesh): Promise<number> {
  const answer = await fetch(`${mesh.baseUrl}/images/generations`, {
    method: "POST",
    headers: { authorization: `Bearer ${mesh.bannerKey}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "image-1", prompt: "a square" }),
  });
  await answer.arrayBuffer();
  return answer.status;
}

test.for([
  ["all data", (at: string) => ({ GENMESH_DATA_DIR: join(at, "data") }), think],
  ["files", (at: string) => ({ GENMESH_BLOBS_URL: `file:${join(at, "blobs")}` }), draw],
] as const)(
  "a full disk of %s: not ready, one line in the log, and ready again with room",
  { timeout: 240_000 },
  async ([, env, ask], { skip }) => {
    if (whyNot !== undefined) skip(whyNot);
    await using mesh = await startRunning({
      GENMESH_DATA_DIR: join(folder.path, "data"),
      ...env(small),
    });
    expect(await readiness(mesh)).toBe("200 ready");
    expect(await ask(mesh)).toBeLessThan(300);
    const free = await fill();
    const statuses = await Promise.all(Array.from({ length: 30 }, () => ask(mesh)));
    for (const status of statuses) expect([200, 202, 503]).toContain(status);
    await until(
      "it is not ready",
      async () => (await readiness(mesh)) === "503 the disk takes no writes",
      patience,
    );
    for (let round = 0; round < 30; round++) await ask(mesh);
    const faults = mesh
      .stderr()
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line))
      .filter(({ level }) => level > 30);
    // A sweep may log a warning where it met the full disk before the disk was known to be full.
    const warnings = faults.filter(({ level }) => level < 50);
    expect(warnings.filter(({ msg }) => msg !== "a sweep failed")).toEqual([]);
    expect(warnings.length).toBeLessThan(10);
    const errors = faults.filter(({ level }) => level >= 50);
    expect(errors).toMatchObject([{ level: 50, err: { code: "ENOSPC" } }]);
    expect(errors[0].store).toMatch(/^disk/);
    await free();
    await until("it is ready", async () => (await readiness(mesh)) === "200 ready", patience);
    expect(await ask(mesh)).toBeLessThan(300);
  },
);

const catalog = (baseUrl: string) => `
upstreams:
  paid: { protocol: openai, baseUrl: ${JSON.stringify(baseUrl)}, apiKeyEnv: UP_KEY }
models:
  - id: paid-image
    kind: image
    upstream: paid
    creditPrice: 1
    sizes: ["64x64"]
    availableAspectRatios: ["auto", "1:1"]
  - id: paid-speech
    kind: speech
    upstream: paid
    voices: [alloy]
    pricing: { usdMicrosPerMillionCharacters: 15000000 }
`;

test("an image and a speech that were paid for outlive a disk of files that is full for seconds", {
  timeout: 240_000,
}, async ({ skip }) => {
  if (whyNot !== undefined) skip(whyNot);
  const outputs = { images: [await samplePng(64, 64)], video: sampleMp4(), sound: sampleMp3(3) };
  await using upstream = await startScriptedMediaUpstream("openai", outputs);
  const file = join(folder.path, "catalog.yaml");
  await writeFile(file, catalog(upstream.baseUrl));
  await using mesh = await startRunning({
    GENMESH_DATA_DIR: join(folder.path, "data"),
    GENMESH_BLOBS_URL: `file:${join(small, "blobs")}`,
    GENMESH_CATALOG: file,
    UP_KEY: "up",
  });
  const ask = async (path: string, body?: object) => {
    const answer = await fetch(`${mesh.baseUrl}${path}`, {
      method: body ? "POST" : "GET",
      headers: { authorization: `Bearer ${mesh.bannerKey}`, "content-type": "application/json" },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    return { status: answer.status, json: await answer.json() };
  };
  const free = await fill();
  const image = { model: "paid-image", prompt: "x", size: "64x64" };
  const { status, json } = await ask("/images/generations", image);
  expect(status).toBe(202);
  await until("upstream to have painted", () => upstream.requests.length === 1, patience);
  const speech = { model: "paid-speech", input: "Hello there.", voice: "alloy" };
  const speaking = ask("/speech/generations", speech);
  await until("upstream to have spoken", () => upstream.requests.length === 2, patience);
  await until(
    "it is not ready",
    async () => (await readiness(mesh)) === "503 the disk takes no writes",
    patience,
  );
  await free();
  const ended = await until(
    "the job's end",
    async () => {
      const job = await ask(json.statusUrl.slice(mesh.baseUrl.length));
      return job.json.terminal ? job.json : undefined;
    },
    patience,
  );
  expect(ended.status).toBe("completed");
  const painted = upstream.requests.filter(({ path }) => path.includes("/images/"));
  expect(painted).toHaveLength(1);
  const spoken = upstream.requests.filter(({ path }) => path.includes("/audio/"));
  expect((await speaking).status).toBe(200);
  expect(spoken).toHaveLength(1);
});

test.each([
  ["in base64", "b64_json", "when it is written", "size=4k"],
  ["by its URL", "url", "when it is written", "size=4k"],
  ["in base64", "b64_json", "for its file", "nr_inodes=1"],
] as const)(
  "a picture that comes %s (%s) outlives a disk without room %s",
  async (_, imagesAs, _when, bound) => {
    if (whyNot !== undefined) return;
    const image = Buffer.concat([await samplePng(64, 48), Buffer.alloc(300_000)]);
    const outputs = { images: [image], video: sampleMp4(), sound: sampleMp3() };
    await using upstream = await startScriptedMediaUpstream("openai", outputs);
    upstream.wording.imagesAs = imagesAs;
    const tempDir = join(folder.path, "renders");
    mkdirSync(tempDir);
    execFileSync("mount", ["-t", "tmpfs", "-o", bound, "tmpfs", tempDir], { stdio: "pipe" });
    try {
      await using world = await createWorld({ tempDir });
      const { task } = world.task({
        upstream: upstreamAt(upstream.baseUrl),
        request: imageRequest,
      });
      const [output] = await world.upstreams.generate(task);
      expect(await world.stored(output?.blobKey ?? "")).toEqual(image);
      expect(upstream.seen("POST /images/generations")).toHaveLength(1);
    } finally {
      execFileSync("umount", ["--lazy", tempDir]);
    }
  },
);

describe("a disk without room while a builtin video is made", () => {
  const upstream = upstreamAt("", "BUILTIN", { apiKeyEnv: "" });
  const request = { ...videoRequest, durationSeconds: 1, resolution: "96p" } as const;

  test.each([
    ["when it is written", "size=4k"],
    ["for its folder", "nr_inodes=1"],
  ])("%s: the job is offered again later, and has lost no attempt", async (_, bound) => {
    if (whyNot !== undefined) return;
    const tempDir = join(folder.path, "renders");
    mkdirSync(tempDir);
    execFileSync("mount", ["-t", "tmpfs", "-o", bound, "tmpfs", tempDir], { stdio: "pipe" });
    try {
      await using world = await createWorld({ tempDir });
      const { task } = world.task({ upstream, request });
      await expect(world.upstreams.generate(task)).rejects.toMatchObject({
        fault: "not_taken",
        refusal: "unavailable",
        isCertain: true,
      });
    } finally {
      execFileSync("umount", ["--lazy", tempDir]);
    }
  });

  test("in the store of files: likewise", async () => {
    await using world = await createWorld();
    const full = new RefusalError(ErrorReason.SERVICE_UNAVAILABLE);
    const store = () => Promise.reject(full);
    const { task } = world.task({ upstream, request, store });
    await expect(world.upstreams.generate(task)).rejects.toMatchObject({ fault: "not_taken" });
  });
});
