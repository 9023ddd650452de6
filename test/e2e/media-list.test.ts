import { afterAll, describe, expect, test } from "vitest";
import { type Asked, type Caller, refusalOf } from "./caller.ts";
import { type Document, ended, heldImages, startMediaWorld, submit } from "./media-world.ts";
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
      // Jobs of one millisecond have no order.
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
    // Each is the document that its own path gives.
    const { json: second } = await caller.get(`/images/generations/${newest[4]}`);
    expect(all.json.data[4]).toEqual(second);

    const pages: string[][] = [];
    for (let cursor: string | null = ""; cursor !== null; ) {
      const page: Asked = await caller.get(`/jobs?limit=2&cursor=${encodeURIComponent(cursor)}`);
      pages.push(ids(page));
      cursor = page.json.nextCursor;
      expect(page.json.hasMore).toBe(cursor !== null);
      // What comes meanwhile changes no page behind.
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

  test.each([
    ["limit=0", "invalid_value limit"],
    ["limit=101", "invalid_value limit"],
    ["limit=ten", "invalid_type limit"],
    ["status=done", "invalid_value status"],
    ["kind=speech", "invalid_value kind"],
    ["cursor=nonsense", "invalid_value cursor"],
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
    /** What has come so far, once there is something new; undefined at the end. */
    async more(): Promise<SseEvent[] | undefined> {
      const { done, value } = await reader.read();
      if (done) return undefined;
      text += value;
      return takeEvents(text).events;
    },
    /** Everything, read to the end. */
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
