import { afterAll, describe, expect, test } from "vitest";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { type Caller, refusalOf } from "./caller.ts";
import {
  askedOf,
  creditsOf,
  download,
  ended,
  type MediaWorld,
  remove,
  startMediaWorld,
  submit,
  upload,
} from "./media-world.ts";
import { ownWorldOnly, type WorldOptions } from "./world.ts";

const { world, png, ...rest } = await startMediaWorld();
afterAll(() => rest[Symbol.asyncDispose]());
ownWorldOnly();

const image = { model: "scripted-image", prompt: "a boat" };
const speech = { model: "scripted-speech", input: "Hi", voice: "alloy" };
const video = { model: "text-only", prompt: "waves" };
const music = { model: "music-1", mode: "opera" };
const denied = "403 permission_error permission_denied null";

describe("scopes", () => {
  const none = "job_000000000000000000000000";
  /** The routes of each scope. Without the scope the status is 403, with it any other. */
  const doors: [scope: Scope, name: string, ask: (caller: Caller) => Promise<string>][] = [];
  const door = (
    scope: Scope,
    name: string,
    ask: (caller: Caller) => Promise<Parameters<typeof refusalOf>[0]>,
  ) => doors.push([scope, name, async (caller) => refusalOf(await ask(caller))]);
  for (const [scope, area, body] of [
    [Scope.IMAGES, "images", image],
    [Scope.VIDEOS, "videos", video],
    [Scope.MUSIC, "music", music],
  ] as const) {
    const path = `/${area}/generations`;
    door(scope, `submitting ${area}`, (caller) => caller.post(path, body));
    door(scope, `polling ${area}`, (caller) => caller.get(`${path}/${none}`));
    door(scope, `cancelling ${area}`, (caller) => caller.post(`${path}/${none}/cancel`, {}));
    door(scope, `deleting ${area}`, async (caller) =>
      askedOf(await download(caller, `${path}/${none}`, { method: "DELETE" })),
    );
    door(scope, `fetching ${area}`, (caller) => caller.get(`${path}/${none}/files/file_1`));
  }
  door(Scope.SPEECH, "speaking", (caller) => caller.post("/speech/generations", speech));
  door(Scope.SPEECH, "fetching speech", (caller) =>
    caller.get("/speech/generations/speech_1/files/file_1"),
  );
  door(Scope.FILES, "uploading", (caller) => upload(caller, png));
  door(Scope.FILES, "listing files", (caller) => caller.get("/files"));
  door(Scope.FILES, "a file", (caller) => caller.get("/files/file_1"));
  door(Scope.FILES, "a file's content", (caller) => caller.get("/files/file_1/content"));
  door(Scope.FILES, "deleting", (caller) => remove(caller, "file_1"));

  test.each([
    ["images", Scope.IMAGES],
    ["videos", Scope.VIDEOS],
    ["music", Scope.MUSIC],
    ["speech", Scope.SPEECH],
    ["files", Scope.FILES],
    ["text", Scope.TEXT],
  ])("%s alone opens its own doors", async (_, scope) => {
    const account = await world.caller({ credits: 50n });
    const caller = await world.withKey(account, { scopes: [scope] });
    const answers = await Promise.all(
      doors.map(async ([, name, ask]) => [name, (await ask(caller)) === denied] as const),
    );
    expect(answers).toEqual(doors.map(([needed, name]) => [name, needed !== scope]));
    // With any scopes the list has only the key's own jobs.
    expect((await caller.get("/jobs")).status).toBe(200);
  });
});

test("a key for some models may not use the others, by either spelling", async () => {
  const account = await world.caller({ credits: 50n });
  const caller = await world.withKey(account, { allowedModels: ["scripted-image"] });
  await submit(caller, "images", image);
  for (const [path, body, param] of [
    ["/images/generations", { ...image, model: "small-image" }, "model"],
    ["/videos/generations", video, "model"],
    ["/videos/generations", { modelId: "text-only", prompt: "x" }, "modelId"],
    ["/speech/generations", speech, "model"],
  ] as const) {
    const refusal = `403 permission_error permission_denied ${param}`;
    expect(refusalOf(await caller.post(path, body))).toBe(refusal);
  }
  expect(await caller.balance()).toMatchObject({ reserved: 0, monthSpend: 0 });
});

test("without a key every path is 401", async () => {
  const stranger = world.holding("nobody-at-all-0123456789");
  const paths = ["/jobs", "/files", "/images/generations/job_1", "/videos/generations/a/files/b"];
  for (const path of [...paths, "/jobs/job_1/events"]) {
    const answer = await stranger.get(path);
    expect(refusalOf(answer)).toBe("401 authentication_error invalid_api_key null");
    expect(answer.headers.get("www-authenticate")).toBe("Bearer");
  }
});

/** Runs a check in a world of its own. */
async function within(
  env: NonNullable<WorldOptions["env"]>,
  check: (one: MediaWorld) => Promise<void>,
): Promise<void> {
  await using one = await startMediaWorld({ env });
  await check(one);
}

describe("URLs in answers", () => {
  const forwarded = { "x-forwarded-proto": "https", "x-forwarded-host": "front.example:8443" };
  /** All URLs of a whole job and of a speech. */
  const urlsOf = async ({ world: { caller: newCaller } }: Pick<MediaWorld, "world">) => {
    const caller = await newCaller({ credits: 5n });
    const { json: job } = await caller.post("/images/generations", image, { headers: forwarded });
    const path = `/images/generations/${job.id}`;
    const local = { ...job, statusUrl: `${caller.baseUrl}${path}` };
    await ended(caller, local);
    const { json: done } = await caller.get(path, forwarded);
    const { json: listed } = await caller.get("/jobs", forwarded);
    const spoken = await caller.post("/speech/generations", speech, { headers: forwarded });
    const fileUrl = done.images[0].url;
    const { status } = await download(caller, `${path}/files/${done.images[0].id}`);
    expect(status).toBe(200);
    return [
      job.statusUrl,
      done.statusUrl,
      fileUrl,
      listed.data[0].statusUrl,
      spoken.json.audio.url,
    ];
  };
  const bases = (urls: string[]) => [
    ...new Set(urls.map((url) => url.replace(/\/(images|speech)\/.*/, ""))),
  ];

  test("are those of the request; X-Forwarded-* of a peer that is not trusted counts for nothing", async () => {
    expect(bases(await urlsOf({ world }))).toEqual([world.baseUrl]);
  });

  test("are those of a proxy that is trusted", async () => {
    await within({ GENMESH_TRUST_PROXY: "127.0.0.1" }, async (one) => {
      expect(bases(await urlsOf(one))).toEqual(["https://front.example:8443/v1"]);
    });
    await within({ GENMESH_TRUST_PROXY: "10.0.0.0/8" }, async (one) => {
      expect(bases(await urlsOf(one))).toEqual([one.world.baseUrl]);
    });
  });

  test("are those of GENMESH_PUBLIC_URL, behind any proxy", async () => {
    const env = { GENMESH_PUBLIC_URL: "https://api.example/gen", GENMESH_TRUST_PROXY: "127.0.0.1" };
    await within(env, async (one) => {
      expect(bases(await urlsOf(one))).toEqual(["https://api.example/gen/v1"]);
    });
  });
});

describe("GENMESH_RETENTION_DAYS", () => {
  const day = 86_400_000;

  test("1: job and output go after a day, uploads stay", async () => {
    await within({ GENMESH_RETENTION_DAYS: "1" }, async (one) => {
      const caller = await one.world.caller({ credits: 5n });
      const { json: file } = await upload(caller, png);
      const job = await ended(caller, await submit(caller, "images", image));
      expect(Date.parse(job.expiresAt)).toBe(Date.parse(job.completedAt) + day);
      expect(job.images[0].expiresAt).toBe(job.expiresAt);
      await one.world.later(day - 60_000);
      expect((await download(caller, job.images[0].url)).status).toBe(200);
      await one.world.later(2 * 60_000);
      await expect
        .poll(async () => (await caller.get(`/images/generations/${job.id}`)).status)
        .toBe(404);
      const gone = askedOf(await download(caller, job.images[0].url));
      expect(refusalOf(gone)).toBe("404 not_found_error file_not_found null");
      expect((await caller.get("/jobs")).json.data).toEqual([]);
      expect((await caller.get(`/files/${file.id}`)).status).toBe(200);
      expect(await creditsOf(caller)).toMatchObject({ available: 4, reserved: 0 });
    });
  });

  test("0: for ever, and nothing says when", async () => {
    await within({ GENMESH_RETENTION_DAYS: "0" }, async (one) => {
      const caller = await one.world.caller({ credits: 5n });
      const job = await ended(caller, await submit(caller, "images", image));
      expect(job.expiresAt).toBeUndefined();
      expect(job.images[0].expiresAt).toBeUndefined();
      await one.world.later(1_000 * day);
      expect((await download(caller, job.images[0].url)).status).toBe(200);
    });
  });
});
