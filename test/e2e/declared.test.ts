import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { parse } from "yaml";
import { sampleMp4 } from "../../services/upstreams/media/samples.fixture.ts";
import { startDeclaredService } from "../support/upstreams/declared.ts";
import type { Caller } from "./caller.ts";
import { creditsOf, download, submit } from "./media-world.ts";
import { type HostProcess, openingCredits, startProcess } from "./process.ts";
import { takeEvents } from "./sse.ts";
import { ownWorldOnly } from "./world.ts";

ownWorldOnly();
const xai = await startDeclaredService("xai");
const folder = await mkdtemp(join(tmpdir(), "genmesh-declared-"));
const catalogFile = join(folder, "catalog.yaml");
const shipped = new URL("../../deploy/catalogs/xai.yaml", import.meta.url);
const catalog = parse(await readFile(shipped, "utf8"));
Object.assign(catalog.upstreams.xai, { baseUrl: xai.baseUrl });
catalog.upstreams.xai.jobs.poll.everyMs = 500;
await writeFile(catalogFile, JSON.stringify(catalog));
const running: HostProcess[] = [];
afterAll(async () => {
  for (const one of running) await one.kill();
  await xai[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
});

/** The process of `npm start`, with the catalog of xAI. `aheadMs`: milliseconds by which its clock is ahead. */
async function start(aheadMs = 0): Promise<HostProcess> {
  // The double and its files are on this machine.
  const env = { XAI_API_KEY: xai.key, GENMESH_ALLOW_PRIVATE_REFERENCES: "1" };
  const one = await startProcess({ dataDir: join(folder, "data"), catalogFile, aheadMs, env });
  running.push(one);
  return one;
}

const body = { model: "svc-video-1-5", prompt: "a red boat", seconds: 6, resolution: "480p" };
const price = 45;
/** Longer than the lease of a dead worker, in milliseconds. */
const leaseOverMs = 120_000;

/** The events of a job, from its present state to its end. */
async function eventsOf(caller: Caller, id: string) {
  const { text } = await caller.get(`/jobs/${id}/events`, { accept: "text/event-stream" });
  return takeEvents(text).events.flatMap(({ json }) => json ?? []);
}

test("a job at a declared upstream is followed to its end, and charged once", async () => {
  const { caller } = await start();
  const job = await submit(caller, "videos", body);
  const events = await eventsOf(caller, job.id);
  expect(events.at(-1)).toMatchObject({ status: "completed", creditsCharged: price });
  const done = (await caller.get(`/videos/generations/${job.id}`)).json;
  const file = await download(caller, done.videos[0].url);
  expect(file.bytes).toEqual(Buffer.from(sampleMp4()));
  expect(JSON.stringify([events, done])).not.toMatch(/xai|grok/i);
  const { available, reserved } = await creditsOf(caller);
  expect([available, reserved, xai.paid().length]).toEqual([openingCredits - price, 0, 1]);
});

test("a job whose process is killed goes on with its task in the next one", async () => {
  xai.plan({ pace: "held" });
  const paid = xai.paid().length;
  const [first] = running;
  if (!first) throw new Error("no process");
  const before = (await creditsOf(first.caller)).available;
  const job = await submit(first.caller, "videos", body);
  await xai.server.request("look", xai.server.seen("look").length + 1);
  await first.kill();
  xai.finish();
  // Beyond the lease of the dead process.
  const { caller } = await start(leaseOverMs);
  const events = await eventsOf(caller, job.id);
  expect(events.at(-1)).toMatchObject({ status: "completed", creditsCharged: price });
  const { available, reserved } = await creditsOf(caller);
  expect([before - available, reserved, xai.paid().length - paid]).toEqual([price, 0, 1]);
});
