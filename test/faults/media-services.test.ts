import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parse } from "yaml";
import { haveFfmpeg, probeStreams } from "../../services/builtin/testing/ffmpeg.ts";
import { sampleMp4 } from "../../services/upstreams/media/samples.fixture.ts";
import type { Caller } from "../e2e/caller.ts";
import { upstreamKeys } from "../e2e/catalog.ts";
import { type Area, type Document, download, ended, submit } from "../e2e/media-world.ts";
import { type HostProcess, openingCredits, startProcess } from "../e2e/process.ts";
import { takeEvents } from "../e2e/sse.ts";
import { oneProcessOnly } from "../e2e/world.ts";
import { until } from "../support/until.ts";
import { startComfy } from "../support/upstreams/comfyui.ts";
import { falFailures, startFal } from "../support/upstreams/fal.ts";
import { replicateErrors, startReplicate } from "../support/upstreams/replicate.ts";
import {
  startWebhookReceiver,
  verified,
  type WebhookReceiver,
} from "../support/webhook-receiver.ts";

oneProcessOnly();

const shipped = fileURLToPath(new URL("../../deploy/catalogs", import.meta.url));
const key = upstreamKeys.UP_KEY;
let folder: string;
let receiver: WebhookReceiver;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "genmesh-services-"));
  receiver = await startWebhookReceiver();
});
afterAll(async () => {
  await receiver[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
});

/** A double of a service, with the properties of its shipped catalog. */
interface Service extends AsyncDisposable {
  /** The double's address, in place of the service's. */
  baseUrl: string;
  image: { model: string; credits: number };
  /** A video from one image. */
  film: { body: object; credits: number };
  song: { model: string; credits: number };
  /** Does its shipped catalog charge for canceled jobs? */
  cancelCosts?: boolean;
  /** The next submission does not end before {@link finish}. */
  hold(): void;
  finish(): void;
  /** The next submission is refused for its content. Undefined where the service has no such refusal. */
  refuse: (() => void) | undefined;
  /** The number of submissions. */
  submitted(): number;
  /** The number of looks at one. A process that looks has stored its id. */
  looked(): number;
}

const prompt = "a red boat";
const services: Record<string, () => Promise<Service>> = {
  async fal() {
    const fal = await startFal({ key });
    return {
      baseUrl: fal.origin,
      image: { model: "image-1", credits: 5 },
      film: { body: { model: "svcalt-video-1-4", seconds: 5, resolution: "480p" }, credits: 120 },
      song: { model: "music-1", credits: 20 },
      cancelCosts: true,
      hold: () => fal.plan({ pace: "advance" }),
      finish: () => fal.finish(),
      refuse: () => fal.plan({ failure: falFailures.refused }),
      submitted: () => fal.seen("submit").length,
      looked: () => fal.seen("status").length,
      [Symbol.asyncDispose]: () => fal[Symbol.asyncDispose](),
    };
  },
  async replicate() {
    const replicate = await startReplicate({ key });
    return {
      baseUrl: replicate.baseUrl,
      image: { model: "image-1", credits: 2 },
      film: { body: { model: "seedance-1-pro", seconds: 5, resolution: "480p" }, credits: 60 },
      song: { model: "music-1", credits: 20 },
      cancelCosts: true,
      hold: () => replicate.plan({ pace: "advance" }),
      finish: () => replicate.finish(),
      refuse: () => replicate.plan({ end: "failed", error: replicateErrors.refused }),
      submitted: () => replicate.seen("submit").length,
      looked: () => replicate.seen("get").length,
      [Symbol.asyncDispose]: () => replicate[Symbol.asyncDispose](),
    };
  },
  async comfyui() {
    const comfy = await startComfy({ key });
    comfy.outputs.video = sampleMp4({ seconds: 3 });
    return {
      baseUrl: comfy.origin,
      image: { model: "sdxl", credits: 1 },
      film: { body: { model: "wan-2-1-i2v", seconds: 3, resolution: "480p" }, credits: 6 },
      song: { model: "ace-step-1", credits: 4 },
      hold: () => comfy.plan({ pace: "advance" }),
      finish: () => comfy.finish(),
      refuse: undefined,
      submitted: () => comfy.seen("submit").length,
      looked: () => comfy.seen("job").length,
      [Symbol.asyncDispose]: () => comfy[Symbol.asyncDispose](),
    };
  },
};

/** The shipped catalog with its workflows, and with the double's address. */
async function catalogOf(name: string, baseUrl: string): Promise<string> {
  const at = join(folder, name);
  await mkdir(at);
  const catalog = parse(await readFile(join(shipped, `${name}.yaml`), "utf8"));
  for (const own of Object.values<object>(catalog.upstreams)) {
    Object.assign(own, { baseUrl, apiKeyEnv: "UP_KEY" });
  }
  for (const workflow of ["sdxl.json", "wan.json", "ace-step.json"]) {
    await cp(join(shipped, workflow), join(at, workflow));
  }
  const file = join(at, "catalog.yaml");
  await writeFile(file, JSON.stringify(catalog));
  return file;
}

/** The states that a caller sees in a job's events, until the answer ends. */
async function watched(caller: Caller, job: Document): Promise<Document[]> {
  const { text } = await caller.get(`/jobs/${job.id}/events`);
  return takeEvents(text).events.flatMap(({ json }) => (json ? [json] : []));
}

/** Submits a job, watches it to its end by events and by its webhook, and answers its final state. */
async function seenThrough(caller: Caller, area: Area, body: object): Promise<Document> {
  const path = `/hooks/${crypto.randomUUID()}`;
  const job = await submit(caller, area, { ...body, webhookUrl: receiver.url + path });
  const events = await watched(caller, job);
  const done = await ended(caller, job);
  expect(events.at(-1)).toEqual(done);
  const [told] = await receiver.took(path, 1);
  const { json } = await caller.get("/webhooks/secret");
  // A webhook does not name the job's key.
  const { keyId: _, ...document } = done;
  expect(told && verified(told, json.secret)).toMatchObject({
    type: done.status === "completed" ? "job.completed" : "job.failed",
    data: document,
  });
  return done;
}

async function expectBooks({ billing, caller }: HostProcess, spent: number): Promise<void> {
  const { json } = await caller.get("/billing");
  expect(json.credits).toMatchObject({ available: openingCredits - spent, reserved: 0 });
  const findings = [];
  for await (const { finding } of billing.auditLedger({})) findings.push(finding.case);
  expect(findings).toEqual(["summary"]);
  expect((await billing.listHolds({})).holds).toEqual([]);
}

/** Downloads an output, and keeps it for a person to look at. */
async function keep(caller: Caller, url: string, made: { name: string; type: string }) {
  const { headers, bytes } = await download(caller, url);
  expect(headers.get("content-type")).toBe(made.type);
  await writeFile(fileOf(made), bytes);
}

function fileOf({ name, type }: { name: string; type: string }): string {
  return join(folder, `${name}-${type.replace("/", ".")}`);
}

test.each(Object.keys(services))(
  "%s by its shipped catalog: seen through, cancelled, refused, and resumed after kill -9",
  { timeout: 240_000 },
  async (name) => {
    await using service = await (services[name] as () => Promise<Service>)();
    const options = {
      dataDir: join(folder, `${name}-data`),
      catalogFile: await catalogOf(name, service.baseUrl),
      // The double and the receiver are on this machine.
      env: { GENMESH_ALLOW_PRIVATE_REFERENCES: "1" },
    };
    const first = await startProcess(options);
    let { caller } = first;
    const image = { model: service.image.model, prompt };

    const picture = await seenThrough(caller, "images", image);
    expect(picture).toMatchObject({ status: "completed", creditsCharged: service.image.credits });
    const { id, url, sha256 } = picture.images[0];
    await keep(caller, url, { name, type: "image/png" });

    const body = { prompt: "it sails", ...service.film.body, referenceFileIds: [id] };
    const film = await seenThrough(caller, "videos", body);
    expect(film).toMatchObject({ status: "completed", creditsCharged: service.film.credits });
    await keep(caller, film.videos[0].url, { name, type: "video/mp4" });
    const about = { mode: "instrumental", title: "Tides", description: "slow" };
    const song = await seenThrough(caller, "music", { model: service.song.model, ...about });
    expect(song).toMatchObject({ status: "completed", creditsCharged: service.song.credits });
    await keep(caller, song.clips[0].url, { name, type: "audio/mpeg" });
    let spent = service.image.credits + service.film.credits + service.song.credits;
    // Each job is submitted to the service once. The operator pays for submissions.
    let submissions = 3;

    if (service.refuse) {
      service.refuse();
      submissions++;
      const refused = await seenThrough(caller, "images", image);
      expect(refused).toMatchObject({
        status: "failed",
        creditsCharged: 0,
        error: { code: "content_policy_violation" },
      });
    }

    service.hold();
    const unwanted = await submit(caller, "images", image);
    submissions++;
    await until("it is there", () => service.submitted() === submissions);
    await caller.post(`/images/generations/${unwanted.id}/cancel`, {});
    expect(await ended(caller, unwanted)).toMatchObject({
      status: "failed",
      creditsCharged: service.cancelCosts ? service.image.credits : 0,
      error: { code: "job_cancelled" },
    });
    if (service.cancelCosts) spent += service.image.credits;
    service.finish();

    service.hold();
    const resumed = await submit(caller, "images", image);
    submissions++;
    await until("it is there", () => service.submitted() === submissions);
    const looks = service.looked();
    await until("its id is known", () => service.looked() > looks);
    await first.kill();
    const second = await startProcess({ ...options, aheadMs: 120_000 });
    try {
      ({ caller } = second);
      service.finish();
      // The two processes have different ports.
      const statusUrl = `${caller.baseUrl}/images/generations/${resumed.id}`;
      const made = await ended(caller, { statusUrl });
      expect(made).toMatchObject({ status: "completed", creditsCharged: service.image.credits });
      expect((await watched(caller, resumed)).at(-1)).toEqual(made);
      expect(service.submitted()).toBe(submissions);
      spent += service.image.credits;
      // The earlier output is unchanged, byte by byte.
      const again = await caller.get(`/images/generations/${picture.id}`);
      expect(again.json.images[0].sha256).toBe(sha256);
      await expectBooks(second, spent);
    } finally {
      await second.stop();
    }
  },
);

test.skipIf(!haveFfmpeg()).each(Object.keys(services))(
  "what %s made can be looked at and listened to",
  (name) => {
    const probe = (type: string) => probeStreams(fileOf({ name, type }));
    expect(probe("image/png")).toMatchObject([{ codec_type: "video", codec_name: "png" }]);
    const film = { codec_type: "video", codec_name: "h264", width: 320, height: 180 };
    expect(probe("video/mp4")).toContainEqual(expect.objectContaining(film));
    expect(probe("audio/mpeg")).toMatchObject([{ codec_type: "audio", codec_name: "mp3" }]);
  },
);
