import { afterAll, describe, expect, test } from "vitest";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { type Asked, type Caller, refusalOf } from "./caller.ts";
import {
  type Document,
  download,
  ended,
  heldImages,
  startMediaWorld,
  submit,
} from "./media-world.ts";
import { type SseEvent, takeEvents } from "./sse.ts";
import { ownWorldOnly } from "./world.ts";

const { world, media, png, ...rest } = await startMediaWorld();
afterAll(() => rest[Symbol.asyncDispose]());
ownWorldOnly();

const create = "POST /images/generations";
const image = { model: "scripted-image", prompt: "a boat" };
const video = { model: "text-only", prompt: "waves" };
const ids = ({ json }: Asked) => json.data.map(({ id }: Document) => id);
const refusal = { kind: "status", status: 400 } as const;

describe("GET /jobs", () => {
  test("is the key's jobs, newest first, by pages, by state and by kind", async () => {
    const caller = await world.caller({ credits: 100n });
    const made: Document[] = [];
    const add = async (job: Promise<Document>) => {
      made.unshift(await job);
      // Jobs of the same millisecond have no order.
      await world.later(1_000);
    };
    await add(submit(caller, "images", image).then((job) => ended(caller, job)));
    media.next(create, refusal);
    await add(submit(caller, "images", image).then((job) => ended(caller, job)));
    await add(submit(caller, "videos", video).then((job) => ended(caller, job)));
    const held = heldImages(png);
    media.next(create, held.behaviour);
    await add(submit(caller, "images", image));
    media.next(create, refusal);
    await add(submit(caller, "images", image).then((job) => ended(caller, job)));
    const newest = made.map(({ id }) => id);

    const all = await caller.get("/jobs");
    expect(all.json).toMatchObject({ object: "list", hasMore: false, nextCursor: null });
    expect(ids(all)).toEqual(newest);
    // Each is the same document as under its own path.
    const { json: second } = await caller.get(`/images/generations/${newest[4]}`);
    expect(all.json.data[4]).toEqual(second);

    const pages: string[][] = [];
    for (let cursor: string | null = ""; cursor !== null; ) {
      const page: Asked = await caller.get(`/jobs?limit=2&cursor=${encodeURIComponent(cursor)}`);
      pages.push(ids(page));
      cursor = page.json.nextCursor;
      expect(page.json.hasMore).toBe(cursor !== null);
      // Jobs that are made meanwhile change no later page.
      if (pages.length === 1) await submit(caller, "images", image);
    }
    expect(pages).toEqual([newest.slice(0, 2), newest.slice(2, 4), newest.slice(4)]);

    const [failedLate, running, videoId, failedEarly] = newest;
    const failed = [failedLate, failedEarly];
    expect(ids(await caller.get("/jobs?status=failed"))).toEqual(failed);
    const first = await caller.get("/jobs?status=failed&limit=1");
    expect([ids(first), first.json.hasMore]).toEqual([[failedLate], true]);
    expect(ids(await caller.get("/jobs?kind=video"))).toEqual([videoId]);
    expect(ids(await caller.get("/jobs?kind=music"))).toEqual([]);
    expect(ids(await caller.get("/jobs?kind=video&status=failed"))).toEqual([]);
    expect(ids(await caller.get("/jobs?status=running"))).toContain(running);
    held.open();

    const sibling = await world.withKey(caller, {});
    expect(ids(await sibling.get("/jobs"))).toEqual([]);
  });

  test("goes both ways by ids of jobs, also behind one that was deleted, and by model", async () => {
    const caller = await world.caller({ credits: 100n });
    const made: string[] = [];
    for (const model of ["scripted-image", "small-image", "scripted-image", "small-image"]) {
      const job = await ended(caller, await submit(caller, "images", { ...image, model }));
      made.unshift(job.id);
      await world.later(1_000);
    }
    const [d = "", c = "", b = "", a = ""] = made;
    const page = async (query: string) => {
      const { json } = await caller.get(`/jobs?${query}`);
      const { data, first_id, last_id, has_more } = json;
      const found = data.map(({ id }: Document) => id);
      expect([first_id, last_id]).toEqual([found[0] ?? null, found.at(-1) ?? null]);
      return [found, has_more];
    };
    expect(await page("limit=2")).toEqual([[d, c], true]);
    expect(await page(`limit=2&after=${c}`)).toEqual([[b, a], false]);
    expect(await page(`limit=2&after=${a}`)).toEqual([[], false]);
    expect(await page(`limit=2&before=${a}`)).toEqual([[c, b], true]);
    expect(await page(`limit=2&before=${c}`)).toEqual([[d], false]);
    expect(await page("model=small-image")).toEqual([[d, b], false]);
    expect(await page(`model=small-image&limit=1&after=${d}`)).toEqual([[b], false]);
    expect(await page("model=small-image&kind=video")).toEqual([[], false]);
    await download(caller, `/images/generations/${c}`, { method: "DELETE" });
    expect(await page(`limit=2&after=${c}`)).toEqual([[b, a], false]);
    expect(await page("")).toEqual([[d, b, a], false]);

    const stranger = await world.caller();
    const sibling = await world.withKey(caller, {});
    const never = "job_000000000000000000000000";
    for (const [asker, id] of [
      [caller, never],
      [sibling, d],
      [stranger, d],
    ] as const) {
      const answer = await asker.get(`/jobs?after=${id}`);
      expect(refusalOf(answer)).toBe("400 invalid_request_error invalid_value after");
    }
  });

  test("is the whole account's for a key that may read all of its jobs", async () => {
    const owner = await world.caller({ credits: 100n });
    const reader = await world.withKey(owner, { scopes: [Scope.JOBS_READ_ALL] });
    const sibling = await world.withKey(owner, {});
    const stranger = await world.caller({ credits: 100n });
    await submit(stranger, "images", image);
    const first = await ended(owner, await submit(owner, "images", image));
    await world.later(1_000);
    const second = await ended(sibling, await submit(sibling, "images", image));
    const all = await reader.get("/jobs");
    expect(all.json.data).toEqual([
      { ...second, keyId: sibling.keyId },
      { ...first, keyId: owner.keyId },
    ]);
    expect(ids(await reader.get(`/jobs?after=${second.id}&model=scripted-image`))).toEqual([
      first.id,
    ]);
    // The key reads and watches them. Their files and actions are only for the keys that made them.
    const [{ url }] = first.images;
    expect((await download(reader, url)).status).toBe(403);
    const both = await world.withKey(owner, { scopes: [Scope.JOBS_READ_ALL, Scope.IMAGES] });
    expect((await download(both, url)).status).toBe(404);
    const path = `/images/generations/${first.id}`;
    expect((await both.get(path)).json).toEqual({ ...first, keyId: owner.keyId });
    expect(refusalOf(await both.post(`${path}/cancel`, {}))).toMatch(/^404 .* job_not_found/);
    expect((await download(both, path, { method: "DELETE" })).status).toBe(404);
    for (const watcher of [reader, both]) {
      const [event] = await (await watch(watcher, first)).rest();
      expect(event?.name).toBe("job.completed");
      expect(event?.json).toEqual({ ...first, keyId: owner.keyId });
    }
    const elsewhere = await world.withKey(stranger, { scopes: [Scope.JOBS_READ_ALL] });
    for (const other of [elsewhere, sibling]) {
      expect((await other.get(`/jobs/${first.id}/events`)).status).toBe(404);
    }
    // Every key gets this scope by name only.
    expect(ids(await owner.get("/jobs"))).toEqual([first.id]);
  });

  test.each([
    ["limit=0", "invalid_value limit"],
    ["limit=101", "invalid_value limit"],
    ["limit=ten", "invalid_type limit"],
    ["status=done", "invalid_value status"],
    ["kind=speech", "invalid_value kind"],
    ["cursor=nonsense", "invalid_value cursor"],
    ["after=job_a&cursor=nonsense", "invalid_value cursor"],
    ["after=job_a&before=job_b", "invalid_value before"],
    ["before=nonsense", "invalid_value before"],
  ])("?%s is refused", async (query, want) => {
    const caller = await world.caller();
    const answer = await caller.get(`/jobs?${query}`);
    expect(refusalOf(answer)).toBe(`400 invalid_request_error ${want}`);
  });
});

/** Opens the events of a job. */
async function watch(caller: Caller, { id }: Document) {
  const response = await fetch(`${caller.baseUrl}/jobs/${id}/events`, {
    headers: { authorization: `Bearer ${caller.key}` },
  });
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toMatch(/^text\/event-stream/);
  if (!response.body) throw new Error("no body");
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  return {
    /** The events that have arrived so far, once there is a new one. Undefined at the end. */
    async more(): Promise<SseEvent[] | undefined> {
      const { done, value } = await reader.read();
      if (done) return undefined;
      text += value;
      return takeEvents(text).events;
    },
    /** All events, read to the end. */
    async rest(): Promise<SseEvent[]> {
      while (await this.more()) {}
      return takeEvents(text).events.filter(({ comment }) => comment === undefined);
    },
  };
}
const order = ["job.queued", "job.running", "job.completed", "job.failed"];

describe("GET /jobs/{id}/events", () => {
  test("tells each state until the last, whose data is the document", async () => {
    const caller = await world.caller({ credits: 5n });
    const held = heldImages(png);
    media.next(create, held.behaviour);
    const job = await submit(caller, "images", image);
    const watching = await watch(caller, job);
    for (let seen: SseEvent[] | undefined = []; seen; seen = await watching.more()) {
      if (seen.some(({ name }) => name === "job.running")) break;
    }
    held.open();
    const events = await watching.rest();
    const names = events.map(({ name }) => name ?? "");
    expect(names.at(-1)).toBe("job.completed");
    expect(names).toContain("job.running");
    expect(names.toSorted((a, b) => order.indexOf(a) - order.indexOf(b))).toEqual(names);
    for (const { name, json } of events) {
      expect(`job.${json.status}`).toBe(name);
      expect(json.id).toBe(job.id);
    }
    expect(events.at(-1)?.json).toEqual(await ended(caller, job));
  });

  test("of a job that failed", async () => {
    const caller = await world.caller({ credits: 5n });
    media.next(create, refusal);
    const job = await submit(caller, "images", image);
    const last = (await (await watch(caller, job)).rest()).at(-1);
    expect(last?.name).toBe("job.failed");
    expect(last?.json).toMatchObject({ terminal: true, creditsCharged: 0 });
    expect(last?.json.error.code).toBe("generation_failed");
  });

  test("of a job that had ended before is one event", async () => {
    const caller = await world.caller({ credits: 5n });
    const job = await ended(caller, await submit(caller, "images", image));
    const events = await (await watch(caller, job)).rest();
    expect(events.map(({ name }) => name)).toEqual(["job.completed"]);
    expect(events[0]?.json).toEqual(job);
  });

  test("of a job that is none is 404", async () => {
    const caller = await world.caller();
    const answer = await caller.get("/jobs/job_000000000000000000000000/events");
    expect(refusalOf(answer)).toBe("404 not_found_error job_not_found null");
  });
});
