import { readFileSync } from "node:fs";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { maxEmptyMs } from "../../services/media/limits.ts";
import { samplePng } from "../../services/upstreams/media/samples.fixture.ts";
import { until } from "../support/until.ts";
import type { Mishap } from "../support/upstreams/double.ts";
import { falAnswers, falFailures, startFal } from "../support/upstreams/fal.ts";
import {
  replicateAnswers,
  replicateErrors,
  startReplicate,
} from "../support/upstreams/replicate.ts";
import { type CatalogObject, upstreamKeys } from "./catalog.ts";
import { creditsOf, download, ended, submit, upload } from "./media-world.ts";
import { isOwnWorld, ownWorldOnly, startWorld } from "./world.ts";

/** The shipped catalog of a service, with the double's address. */
function shipped(name: "fal" | "replicate", baseUrl: string): CatalogObject {
  const file = new URL(`../../deploy/catalogs/${name}.yaml`, import.meta.url);
  const catalog = parse(readFileSync(file, "utf8")) as CatalogObject;
  const own = { ...catalog.upstreams[name], baseUrl, apiKeyEnv: "UP_KEY" };
  return { ...catalog, upstreams: { [name]: own } };
}

const key = upstreamKeys.UP_KEY;
const fal = await startFal({ key });
const replicate = await startReplicate({ key });
const at = async (name: "fal" | "replicate", baseUrl: string) =>
  startWorld({
    catalog: () => shipped(name, baseUrl),
    // The doubles and their files are on this machine.
    env: { GENMESH_ALLOW_PRIVATE_REFERENCES: "1" },
  });
const falWorld = await at("fal", fal.origin);
const replicateWorld = await at("replicate", replicate.baseUrl);
afterAll(async () => {
  await falWorld[Symbol.asyncDispose]();
  await replicateWorld[Symbol.asyncDispose]();
  await fal[Symbol.asyncDispose]();
  await replicate[Symbol.asyncDispose]();
});
ownWorldOnly();
beforeEach(() => {
  if (!isOwnWorld) return;
  Object.assign(fal.usual, { positions: [], running: 0 });
  Object.assign(replicate.usual, { starting: 0, processing: 0 });
});

interface Service {
  name: string;
  world: typeof falWorld;
  double: Pick<typeof fal, "files"> & {
    next: (route: "submit", mishap: Mishap) => void;
    always: (route: "submit", mishap: Mishap | undefined) => void;
    seen: (route: "submit") => unknown[];
    paid: () => string[];
  };
  /** A video model, its seconds, and the price of one video of 480p. */
  video: { model: string; seconds: number; credits: number };
  music: { credits: number };
  image: { credits: number };
  locked: Mishap;
  refuse: () => void;
  break: () => void;
  /** The next task never ends. */
  hold: () => void;
  /** Resolves with the `n`th look at a task. */
  looked: (n: number) => Promise<unknown>;
  cancelled: (n: number) => Promise<unknown>;
}

const services: Service[] = [
  {
    ...{ name: "fal", world: falWorld, double: fal },
    ...{ video: { model: "vendorx-2-0-mini", seconds: 6, credits: 165 } },
    ...{ image: { credits: 5 }, music: { credits: 20 }, locked: falAnswers.locked },
    refuse: () => fal.plan({ failure: falFailures.refused }),
    break: () => fal.plan({ failure: falFailures.timedOut }),
    hold: () => fal.plan({ pace: "advance", positions: [0] }),
    looked: (n) => fal.request("status", fal.seen("status").length + n),
    cancelled: (n) => fal.request("cancel", n),
  },
  {
    ...{ name: "Replicate", world: replicateWorld, double: replicate },
    ...{ video: { model: "seedance-1-pro", seconds: 5, credits: 60 } },
    ...{ image: { credits: 2 }, music: { credits: 20 } },
    locked: replicateAnswers.insufficientCredit,
    refuse: () => replicate.plan({ end: "failed", error: replicateErrors.refused }),
    break: () => replicate.plan({ end: "failed" }),
    hold: () => replicate.plan({ pace: "advance", starting: 1 }),
    looked: (n) => replicate.request("get", replicate.seen("get").length + n),
    cancelled: (n) => replicate.request("cancel", n),
  },
];

describe.each(services)("the shipped catalog for $name", (service) => {
  const { world, double } = service;
  const image = { model: "image-1", prompt: "a red boat" };

  test("makes pictures, a video from two frames and music, at their prices", async () => {
    const caller = await world.caller({ credits: 1_000n });
    const paid = double.paid().length;
    const pictures = await submit(caller, "images", { ...image, n: 2 });
    const made = await ended(caller, pictures);
    expect(made).toMatchObject({ status: "completed", creditsCharged: 2 * service.image.credits });
    expect(made.images).toHaveLength(2);
    expect((await download(caller, made.images[1].url)).bytes).toEqual(await samplePng());

    const { model, seconds, credits } = service.video;
    const files = [];
    for (const name of ["first.png", "last.png"]) {
      files.push((await upload(caller, await samplePng(), { name })).json.id);
    }
    const body = { model, prompt: "waves", seconds, resolution: "480p", referenceFileIds: files };
    const film = await ended(caller, await submit(caller, "videos", body));
    expect(film).toMatchObject({ status: "completed", creditsCharged: credits });
    expect(film.videos[0]).toMatchObject({ mimeType: "video/mp4" });

    const song = { model: "music-1", mode: "instrumental", title: "Tides", description: "slow" };
    const heard = await ended(caller, await submit(caller, "music", song));
    expect(heard).toMatchObject({ status: "completed", creditsCharged: service.music.credits });

    const spent = 2 * service.image.credits + credits + service.music.credits;
    expect(await creditsOf(caller)).toMatchObject({ available: 1_000 - spent, reserved: 0 });
    expect(double.paid().length - paid).toBe(3);
  });

  test("charges nothing for what was refused, what failed and what was lost", async () => {
    const caller = await world.caller({ credits: 100n });
    const failing = async () => (await ended(caller, await submit(caller, "images", image))).error;
    const song = { model: "music-1", mode: "instrumental", title: "Tides", description: "slow" };
    service.refuse();
    expect(await failing()).toMatchObject({ code: "content_policy_violation" });
    service.break();
    expect(await failing()).toMatchObject({ code: "generation_failed" });
    const before = double.seen("submit").length;
    double.next("submit", { kind: "lost" });
    const { error } = await ended(caller, await submit(caller, "music", song));
    expect(error).toMatchObject({ code: "generation_failed" });
    expect(error.message).toMatch(/answer was lost/);
    expect(double.seen("submit").length - before).toBe(1);
    expect(await creditsOf(caller)).toMatchObject({ available: 100, reserved: 0, monthSpent: 0 });
  });

  test("asks for a picture again whose answer was lost, and charges it once", async () => {
    const caller = await world.caller({ credits: 100n });
    const before = double.seen("submit").length;
    double.next("submit", { kind: "lost" });
    const job = await submit(caller, "images", image);
    await until("the loss", () => double.seen("submit").length > before);
    await world.later(10_000);
    const { credits } = service.image;
    expect(await ended(caller, job)).toMatchObject({
      status: "completed",
      creditsCharged: credits,
    });
    expect(double.seen("submit").length - before).toBe(2);
    expect(await creditsOf(caller)).toMatchObject({ available: 100 - credits, reserved: 0 });
  });

  test("waits some minutes where the operator's account is empty, and tells the operator", async () => {
    const caller = await world.caller({ credits: 100n });
    const waits = async (job: { id: string }) => {
      const ofJob = () => world.log.filter((line) => line.includes(job.id));
      const isBack = (line: string) => line.includes("not_taken");
      await until("the job to wait", () => ofJob().some(isBack));
      expect(ofJob().some((line) => line.includes("denies what is configured"))).toBe(true);
    };
    double.always("submit", service.locked);
    const job = await submit(caller, "images", image);
    await waits(job);
    // The job is offered to the service now and then, which takes a moment.
    const parked = await until("the job in the queue", async () => {
      const { json } = await caller.get(`/images/generations/${job.id}`);
      return json.status === "queued" ? json : undefined;
    });
    expect(parked).toMatchObject({ error: null });
    double.always("submit", undefined);
    await world.later(60_000);
    expect(await ended(caller, job)).toMatchObject({ status: "completed" });

    double.always("submit", service.locked);
    const late = await submit(caller, "images", image);
    await waits(late);
    await world.later(maxEmptyMs);
    const { error } = await ended(caller, late);
    double.always("submit", undefined);
    expect(error).toMatchObject({ type: "server_error", code: "service_unavailable" });
    expect(error.message).not.toMatch(/account|upstream/);
    const credits = { available: 100 - service.image.credits, reserved: 0 };
    expect(await creditsOf(caller)).toMatchObject(credits);
  });

  test("ends after half an hour, and takes back what the service still has", async () => {
    const caller = await world.caller({ credits: 100n });
    service.hold();
    const looked = service.looked(1);
    const job = await submit(caller, "images", image);
    await looked;
    await world.later(30 * 60_000);
    const { error } = await ended(caller, job);
    expect(error).toMatchObject({ code: "upstream_timeout" });
    await service.cancelled(1);
    expect(await creditsOf(caller)).toMatchObject({ available: 100, reserved: 0 });
  });
});

test("of pictures that fal has made and refuses in part the others are given and charged", async () => {
  const caller = await falWorld.caller({ credits: 100n });
  fal.plan({
    output: () => ({
      images: [1, 2, 3].map(() => ({
        url: fal.files.add({ bytes: fal.outputs.images[0] ?? Buffer.of(), type: "image/png" }),
      })),
      has_nsfw_concepts: [false, true, false],
    }),
  });
  const asked = { model: "image-1", prompt: "a red boat", n: 3 };
  const job = await ended(caller, await submit(caller, "images", asked));
  expect(job).toMatchObject({ status: "completed", n: 3, error: null });
  expect(job).toMatchObject({ creditsReserved: 15, creditsCharged: 10 });
  expect(job.images).toHaveLength(2);
  expect(await creditsOf(caller)).toMatchObject({ available: 90, reserved: 0 });
  const { json } = await caller.get("/requests");
  expect(json.data[0]).toMatchObject({ images: 2, creditsCharged: 10, status: "completed" });
});
