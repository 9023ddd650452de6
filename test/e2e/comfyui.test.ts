import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeEach, expect, test } from "vitest";
import { parse } from "yaml";
import { sampleMp4, samplePng } from "../../services/upstreams/media/samples.fixture.ts";
import { until } from "../support/until.ts";
import { startComfy } from "../support/upstreams/comfyui.ts";
import { upstreamKeys } from "./catalog.ts";
import { creditsOf, ended, submit, upload } from "./media-world.ts";
import { isOwnWorld, ownWorldOnly, startWorld } from "./world.ts";

const shipped = fileURLToPath(new URL("../../deploy/catalogs", import.meta.url));
const comfy = await startComfy({ key: upstreamKeys.UP_KEY });
comfy.outputs.video = sampleMp4({ seconds: 3 });
const folder = await mkdtemp(join(tmpdir(), "genmesh-comfyui-"));
for (const name of ["sdxl.json", "wan.json", "ace-step.json"])
  await cp(join(shipped, name), join(folder, name));
const catalog = parse(await readFile(join(shipped, "comfyui.yaml"), "utf8"));
Object.assign(catalog.upstreams.gpu, { baseUrl: comfy.origin, apiKeyEnv: "UP_KEY" });
const catalogFile = join(folder, "comfyui.yaml");
await writeFile(catalogFile, JSON.stringify(catalog));
const world = await startWorld({ env: { GENMESH_CATALOG: catalogFile } });
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await comfy[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
});
ownWorldOnly();
beforeEach(() => {
  if (isOwnWorld) comfy.usual.pace = "itself";
});

const image = { model: "sdxl", prompt: "a red boat" };

test("pictures and a film from one, at their prices", async () => {
  const caller = await world.caller({ credits: 100n });
  const pictures = await ended(caller, await submit(caller, "images", { ...image, n: 2 }));
  expect(pictures).toMatchObject({ status: "completed", creditsCharged: 2 });
  expect(pictures.images).toHaveLength(2);
  const file = (await upload(caller, await samplePng(), { name: "boat.png" })).json.id;
  const film = { model: "wan-2-1-i2v", prompt: "it sails", seconds: 3, referenceFileIds: [file] };
  const made = await ended(caller, await submit(caller, "videos", film));
  expect(made).toMatchObject({ status: "completed", creditsCharged: 6 });
  expect(comfy.runs.at(-1)?.graph["50"]?.inputs).toMatchObject({ length: 49, width: 832 });
  expect(comfy.runs.at(-1)?.references).toMatchObject([{ at: "52.image" }]);
  expect(await creditsOf(caller)).toMatchObject({ available: 92, reserved: 0 });
});

test("a song with its lyrics, and an instrumental that keeps the workflow's word for none", async () => {
  const caller = await world.caller({ credits: 10n });
  const song = { model: "ace-step-1", title: "Harbour", description: "slow" };
  const sung = { ...song, mode: "lyrics", lyrics: "The lights go out" };
  for (const [body, lyrics] of [
    [sung, "The lights go out"],
    [{ ...song, mode: "instrumental" }, "[instrumental]"],
  ] as const) {
    const made = await ended(caller, await submit(caller, "music", body));
    expect(made).toMatchObject({ status: "completed", creditsCharged: 4 });
    expect(made.clips).toMatchObject([{ mimeType: "audio/mpeg" }]);
    expect(comfy.runs.at(-1)?.graph["14"]?.inputs).toMatchObject({ tags: "Harbour. slow", lyrics });
  }
  expect(await creditsOf(caller)).toMatchObject({ available: 2, reserved: 0 });
});

test("a job outlives a restart of the server and a lost answer, and is charged for once", async () => {
  const caller = await world.caller({ credits: 10n });
  comfy.usual.pace = "advance";
  const runs = comfy.runs.length;
  const job = await submit(caller, "images", image);
  await until("the graph is at work", () => comfy.runs.length > runs, { withinMs: 60_000 });
  await comfy.restart();
  comfy.usual.pace = "itself";
  const brokenOff = (line: string) => line.includes(job.id) && line.includes("broke_off");
  await until("the attempt breaks off", () => world.log.some(brokenOff), { withinMs: 60_000 });
  await world.later(60_000);
  expect(await ended(caller, job)).toMatchObject({ status: "completed", creditsCharged: 1 });

  comfy.next("submit", { kind: "lost" });
  const lost = await submit(caller, "images", image);
  const sent = comfy.seen("submit").length;
  const unknown = (line: string) => line.includes(lost.id) && line.includes("unknown");
  await until("the answer is lost", () => world.log.some(unknown), { withinMs: 60_000 });
  await world.later(60_000);
  expect(await ended(caller, lost)).toMatchObject({ status: "completed", creditsCharged: 1 });
  expect(comfy.seen("submit").length - sent).toBeLessThanOrEqual(1);
  expect(await creditsOf(caller)).toMatchObject({ available: 8, reserved: 0 });
});

test("what fails there costs nothing", async () => {
  const caller = await world.caller({ credits: 10n });
  comfy.plan({ failure: { message: "out of memory", type: "torch.OutOfMemoryError" } });
  const job = await ended(caller, await submit(caller, "images", image));
  expect(job).toMatchObject({ status: "failed", error: { code: "generation_failed" } });
  expect(await creditsOf(caller)).toMatchObject({ available: 10, reserved: 0 });
});
