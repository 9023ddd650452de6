import { afterAll, expect, test } from "vitest";
import { describeWithServers } from "../support/on-servers.ts";
import { startDeclaredUpstreams } from "./kills.declared.ts";
import { soak } from "./kills.run.ts";
import { type SoakUpstreams, startUsualUpstreams } from "./kills.upstreams.ts";

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

async function carryOut(
  start: () => Promise<SoakUpstreams>,
  where: { onServers: boolean },
): Promise<void> {
  await using upstreams = await start();
  const report = await soak({ seed, kills, upstreams, ...where });
  reports.push(JSON.stringify({ ...where, ...report }, undefined, 1));
  const { lost, chargedTwice, createdTwice, paidWrongly } = report;
  expect({ lost, chargedTwice, createdTwice, paidWrongly }).toEqual({
    ...{ lost: [], chargedTwice: [], createdTwice: [], paidWrongly: [] },
  });
  expect(report.restedAfterSeconds).toBeLessThan(180);
}

const tests = [
  ["fal, ComfyUI and OpenAI's images", startUsualUpstreams],
  ["upstreams that the catalog describes", startDeclaredUpstreams],
] as const;
const title = `nothing is lost, charged twice or paid twice at %s after ${kills} kills (seed ${seed})`;

test.each(tests)(title, { timeout }, (_, start) => carryOut(start, { onServers: false }));

// Only where the variable sets a number, because on a busy machine a kill takes half a minute there.
if (process.env.GENMESH_TEST_KILLS !== undefined) {
  await describeWithServers("on MongoDB, JetStream and S3", () => {
    test.each(tests)(title, { timeout }, (_, start) => carryOut(start, { onServers: true }));
  });
}
