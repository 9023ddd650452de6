import { afterAll, describe, expect, test } from "vitest";
import { until } from "../support/until.ts";
import { type Caller, refusalOf } from "./caller.ts";
import {
  type Area,
  askedOf,
  creditsOf,
  type Document,
  download,
  ended,
  heldImages,
  pathOf,
  startMediaWorld,
  submit,
} from "./media-world.ts";
import { ownWorldOnly, startWorld } from "./world.ts";

const { world, media, png, ...rest } = await startMediaWorld();
afterAll(() => rest[Symbol.asyncDispose]());
ownWorldOnly();

const create = "POST /images/generations";
const image = { model: "scripted-image", prompt: "a boat" };
const video = { model: "text-only", prompt: "waves" };
const none = "404 not_found_error job_not_found null";
const gone = { object: "list", data: [] };

/** A job whose request is held at the upstream. So no other job can get the answer that was prepared for it. */
async function heldJob(caller: Caller) {
  const held = heldImages(png);
  const before = media.seen(create).length;
  media.next(create, held.behaviour);
  const job = await submit(caller, "images", image);
  const asked = await until("the request upstream", () => media.seen(create)[before]);
  return { job, held, asked };
}
const cancel = (caller: Caller, area: Area, { id }: Document) =>
  caller.post(`/${area}/generations/${id}/cancel`, {});
const remove = async (caller: Caller, area: Area, { id }: Document) =>
  askedOf(await download(caller, `/${area}/generations/${id}`, { method: "DELETE" }));

describe("POST /…/generations/{jobId}/cancel", () => {
  test("ends a running job: released, and its request upstream closed", async () => {
    const caller = await world.caller({ credits: 5n });
    const { job, held, asked } = await heldJob(caller);
    const answer = await cancel(caller, "images", job);
    expect(answer.status).toBe(200);
    expect(answer.json).toMatchObject({
      ...{ id: job.id, status: "failed", terminal: true, creditsCharged: 0, images: [] },
      error: { code: "job_cancelled", type: "invalid_request_error", param: null },
    });
    expect(await creditsOf(caller)).toMatchObject({ reserved: 0, spendable: 5, monthSpent: 0 });
    await asked.over;
    held.open();
    expect((await cancel(caller, "images", job)).json).toEqual(answer.json);
    expect((await caller.get(`/images/generations/${job.id}`)).json).toEqual(answer.json);
  });

  test("takes no body, and an Idempotency-Key changes nothing", async () => {
    const caller = await world.caller({ credits: 5n });
    const { job, held } = await heldJob(caller);
    const path = `/images/generations/${job.id}/cancel`;
    const headers = { "idempotency-key": "k" };
    const answer = askedOf(await download(caller, path, { method: "POST", headers }));
    held.open();
    expect([answer.status, answer.json.error.code]).toEqual([200, "job_cancelled"]);
  });

  test("of what has ended otherwise is 409, which no client repeats", async () => {
    const caller = await world.caller({ credits: 5n });
    const job = await ended(caller, await submit(caller, "images", image));
    const answer = await cancel(caller, "images", job);
    expect(refusalOf(answer)).toBe("409 invalid_request_error job_not_cancellable null");
    expect(answer.headers.get("x-should-retry")).toBe("false");
    expect(await creditsOf(caller)).toMatchObject({ monthSpent: 1 });
  });

  test("and DELETE of another's job are the 404 of what never existed", async () => {
    const caller = await world.caller({ credits: 50n });
    const sibling = await world.withKey(caller, {});
    const stranger = await world.caller();
    const job = await ended(caller, await submit(caller, "videos", video));
    const never = { id: "job_000000000000000000000000" };
    for (const act of [cancel, remove]) {
      const unknown = await act(caller, "videos", never);
      expect(refusalOf(unknown)).toBe(none);
      for (const other of [sibling, stranger]) {
        const { status, json } = await act(other, "videos", job);
        expect([status, json]).toEqual([404, unknown.json]);
      }
      expect(refusalOf(await act(caller, "images", job))).toBe(none);
      expect(refusalOf(await act(world.holding("nobody-at-all-0123456789"), "videos", job))).toBe(
        "401 authentication_error invalid_api_key null",
      );
    }
    expect((await caller.get(`/videos/generations/${job.id}`)).json).toEqual(job);
  });
});

describe("DELETE /…/generations/{jobId}", () => {
  test("removes job, files and place in the list; the money stays", async () => {
    const caller = await world.caller({ credits: 5n });
    const options = { idempotencyKey: "once" };
    const job = await ended(caller, await submit(caller, "images", image, options));
    const [{ url }] = job.images;
    expect((await download(caller, url)).status).toBe(200);
    const before = await creditsOf(caller);
    const answer = await remove(caller, "images", job);
    expect([answer.status, answer.json]).toEqual([
      200,
      { id: job.id, object: "image.job", deleted: true },
    ]);
    expect(refusalOf(await caller.get(pathOf(caller, job.statusUrl)))).toBe(none);
    expect(refusalOf(await caller.get(`/jobs/${job.id}/events`))).toBe(none);
    const file = askedOf(await download(caller, url));
    expect(refusalOf(file)).toBe("404 not_found_error file_not_found null");
    expect((await caller.get("/jobs")).json).toMatchObject(gone);
    expect(refusalOf(await remove(caller, "images", job))).toBe(none);
    const again = await caller.post("/images/generations", image, options);
    expect(refusalOf(again)).toBe(none);
    expect(again.json.error.message).toContain("Idempotency-Key was deleted");
    expect(await creditsOf(caller)).toEqual(before);
  });

  test("of a job that runs is 409: it is cancelled first", async () => {
    const caller = await world.caller({ credits: 5n });
    const { job, held } = await heldJob(caller);
    const refused = await remove(caller, "images", job);
    expect(refusalOf(refused)).toBe("409 invalid_request_error job_not_deletable null");
    expect(refused.headers.get("x-should-retry")).toBe("false");
    await cancel(caller, "images", job);
    held.open();
    expect((await remove(caller, "images", job)).status).toBe(200);
    expect(await creditsOf(caller)).toMatchObject({ reserved: 0, spendable: 5 });
  });
});

describe("a job at another deployment", () => {
  test("is cancelled there too", async () => {
    const between = await world.caller({ credits: 50n });
    await using outer = await startWorld({
      env: { PEER_KEY: between.key },
      catalog: (usual) => ({
        ...usual,
        upstreams: {
          ...usual.upstreams,
          peer: { protocol: "genmesh", baseUrl: world.baseUrl, apiKeyEnv: "PEER_KEY" },
        },
        models: [
          ...usual.models,
          {
            ...{ id: "peers-image", kind: "image", upstream: "peer", creditPrice: 3 },
            ...{ upstreamModel: "scripted-image", sizes: ["64x64"], maxReferences: 0 },
            availableAspectRatios: ["auto"],
          },
        ],
      }),
    });
    const caller = await outer.caller({ credits: 5n });
    const held = heldImages(png);
    media.next(create, held.behaviour);
    const job = await submit(caller, "images", { ...image, model: "peers-image" });
    const theirs = async () => (await between.get("/jobs")).json.data[0];
    await until("the job there", async () => (await theirs())?.status === "running");
    expect((await cancel(caller, "images", job)).json.error.code).toBe("job_cancelled");
    // The worker in the other process learns of it with its next heartbeat.
    await until("its end there", async () => (await theirs())?.error?.code === "job_cancelled", {
      withinMs: 60_000,
    });
    held.open();
    expect(await creditsOf(caller)).toMatchObject({ reserved: 0, spendable: 5 });
    expect(await creditsOf(between)).toMatchObject({ reserved: 0, spendable: 50 });
  });
});
