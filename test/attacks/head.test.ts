import { afterAll, beforeAll, expect, test } from "vitest";
import { scopeNames } from "#common/words/scopes.ts";
import { committedDescription } from "../../gateway/openapi.ts";
import type { Caller } from "../e2e/caller.ts";
import {
  type Document,
  download,
  ended,
  heldImages,
  startMediaWorld,
  submit,
  upload,
} from "../e2e/media-world.ts";
import { ownWorldOnly } from "../e2e/world.ts";

const { world, media, png, ...rest } = await startMediaWorld();
afterAll(() => rest[Symbol.asyncDispose]());
ownWorldOnly();

const description: Document = JSON.parse(await committedDescription());
/** A GET that is only the beginning of a WebSocket has no answer of 200. */
const documented = Object.entries<Document>(description.paths)
  .filter(([, operations]) => operations.get?.responses[200])
  .map(([path]) => path);

let caller: Caller;
/** The documented paths, with ids that exist. */
const real = new Map<string, string>();
beforeAll(async () => {
  const owner = await world.caller({ credits: 1_000n });
  caller = await world.withKey(owner, { scopes: [...Object.values(scopeNames)] });
  const ids: Record<string, { job: string; file: string }> = {};
  const bodies = {
    images: { model: "scripted-image", prompt: "x" },
    videos: { model: "text-only", prompt: "x" },
    music: { model: "music-1", prompt: "x", mode: "instrumental", title: "x" },
  } as const;
  for (const area of ["images", "videos", "music"] as const) {
    const job = await ended(caller, await submit(caller, area, bodies[area]));
    const [output] = job.images ?? job.videos ?? job.clips;
    ids[area] = { job: job.id, file: output.id };
  }
  const spoken = { model: "scripted-speech", input: "Hi", voice: "alloy" };
  const { json: speech } = await caller.post("/speech/generations", spoken);
  ids.speech = { job: speech.id, file: speech.audio.id };
  const { json: file } = await upload(caller, png);
  for (const path of documented) {
    const own = ids[path.split("/")[1] ?? ""] ?? ids.images;
    const replaced = path
      .replace("/files/{fileId}/content", `/files/${file.id}/content`)
      .replace(/^\/files\/\{fileId\}/, `/files/${file.id}`)
      .replace("{model}", "scripted-image")
      .replace("{keyId}", caller.keyId)
      .replace(/\{(?:jobId|speechId)\}/, own?.job ?? "")
      .replace("{fileId}", own?.file ?? "");
    const query: Record<string, string> = {
      "/usage": `?start_time=${Math.floor(world.now() / 1_000) - 3_600}`,
      "/generation": `?id=${speech.id}`,
    };
    real.set(path, replaced + (query[path] ?? ""));
  }
  // Three kinds of media are made, and music is rendered: most of a second on a free core.
});

/** Headers that differ from answer to answer. */
const volatile = [
  "date",
  "x-request-id",
  "x-ratelimit-remaining-requests",
  "x-ratelimit-reset-requests",
];
/** Headers of the transfer. An answer without bytes does not have them. */
const framing = ["transfer-encoding", "connection", "keep-alive"];

function comparable(headers: Headers): Record<string, string> {
  return Object.fromEntries(
    [...headers].filter(([name]) => ![...volatile, ...framing].includes(name)),
  );
}

test.each(documented)("HEAD %s answers as GET does, without a body", async (path) => {
  const url = real.get(path) ?? path;
  expect(url).not.toMatch(/[{}]|undefined/);
  const got = await download(caller, url);
  expect(got.status).toBe(200);
  expect(got.bytes.length).toBeGreaterThan(0);
  const head = await download(caller, url, { method: "HEAD" });
  expect([head.status, head.bytes.length]).toEqual([200, 0]);
  expect(comparable(head.headers)).toEqual(comparable(got.headers));
  expect(head.headers.get("x-request-id")).toBeTruthy();
});

test.each(documented)("HEAD %s refuses as GET does", async (path) => {
  const url = (real.get(path) ?? "").replace(/(_|-)[A-Za-z0-9]+$/, "$1none");
  const stranger = { ...caller, key: "gm_nobody" };
  for (const [who, target] of [
    [stranger, url],
    [caller, url],
    [caller, `${url}/more/of/it`],
  ] as const) {
    const got = await download(who, target);
    const head = await download(who, target, { method: "HEAD" });
    expect([head.status, head.bytes.length]).toEqual([got.status, 0]);
    expect(comparable(head.headers)).toEqual(comparable(got.headers));
  }
});

test.each([
  "/usage?start_time=0&format=csv",
  ...["csv", "jsonl"].map((f) => `/billing/entries?format=${f}`),
])("HEAD of a file that is made as it is sent says no length: %s", async (path) => {
  const got = await download(caller, path);
  const head = await download(caller, path, { method: "HEAD" });
  expect([head.status, head.bytes.length]).toEqual([200, 0]);
  expect(got.bytes.length).toBeGreaterThan(0);
  expect(head.headers.get("content-length")).toBeNull();
  expect(comparable(head.headers)).toEqual(comparable(got.headers));
});

test("HEAD of a job's events answers at once, while the job runs", async () => {
  const held = heldImages(png);
  media.next("POST /images/generations", held.behaviour);
  const job = await submit(caller, "images", { model: "scripted-image", prompt: "x" });
  const head = await download(caller, `/jobs/${job.id}/events`, { method: "HEAD" });
  expect(head.status).toBe(200);
  expect(head.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
  expect((await caller.get(`/images/generations/${job.id}`)).json.terminal).toBe(false);
  held.open();
  await ended(caller, job);
});

test("HEAD outside /v1", async () => {
  const { origin } = new URL(world.baseUrl);
  for (const path of ["/healthz", "/readyz", "/openapi.json", "/docs", "/docs/"]) {
    const [got, head] = await Promise.all([
      fetch(origin + path, { redirect: "manual" }),
      fetch(origin + path, { redirect: "manual", method: "HEAD" }),
    ]);
    expect([path, head.status]).toEqual([path, got.status]);
    expect(comparable(head.headers)).toEqual(comparable(got.headers));
  }
});
