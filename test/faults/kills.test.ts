import { afterAll, expect, test } from "vitest";
import { describeWithServers } from "../support/on-servers.ts";
import { startComfyDouble, startFalDouble, startImagesDouble } from "./jobs.doubles.ts";
import { soak } from "./kills.run.ts";

/** The usual number of kills in one soak. `npm run kills` makes 100. */
const sample = 6;
const most = 1_000;
const kills = Math.min(Number(process.env.GENMESH_TEST_KILLS ?? sample), most);
/** A new seed on each run. A failed run has it in its title. */
const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 1_000_000_000));
/** Milliseconds for each kill with its jobs, and for the two minutes of a lost answer in fast time. */
const timeout = 900_000 + kills * 30_000;

const reports: string[] = [];
afterAll(() => void process.stdout.write(`\n${reports.join("\n")}\n`));

async function carryOut(onServers: boolean): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const fal = [stack.use(await startFalDouble())];
  const comfyui = [stack.use(await startComfyDouble())];
  const images = stack.use(await startImagesDouble({ takesMs: 3_000 }));
  const report = await soak({ seed, kills, fal, comfyui, images, onServers });
  reports.push(JSON.stringify({ onServers, ...report }, undefined, 1));
  const { lost, chargedTwice, createdTwice } = report;
  expect({ lost, chargedTwice, createdTwice }).toEqual({
    ...{ lost: [], chargedTwice: [], createdTwice: [] },
  });
  expect(report.restedAfterSeconds).toBeLessThan(180);
}

const title = `nothing is lost, charged twice or paid twice at fal and ComfyUI after ${kills} kills (seed ${seed})`;

test(title, { timeout }, () => carryOut(false));

// Only where the variable sets a number, because on a busy machine a kill takes half a minute there.
if (process.env.GENMESH_TEST_KILLS !== undefined) {
  await describeWithServers("on MongoDB, JetStream and S3", () => {
    test(title, { timeout }, () => carryOut(true));
  });
}
