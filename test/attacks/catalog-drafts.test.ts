import { afterAll, beforeAll, expect, test } from "vitest";
import { stringify } from "yaml";
import { chat } from "../e2e/catalog.ts";
import { askConsole, ownPage, signIn } from "../edge/console-client.ts";
import { slowness } from "../support/reference-machine.ts";
import { startWatched, type WatchedProcess } from "../support/watched-process.ts";

/** Milliseconds for which one request may block the event loop at most, on a machine as fast as the reference. */
const mostMs = 50;
/** Rounds of each draft. The least time counts, because other work of the machine slows only some of them. */
const rounds = 3;
const mib = 1024 * 1024;
/** Characters of a draft: nearly as many as may be checked. */
const characters = mib - 1_000;

const upstreams = { studio: { protocol: "builtin" } };
const catalogOf = (models: number, price: number) => ({
  developerPrompt: "",
  upstreams,
  models: Array.from({ length: models }, (_, at) =>
    chat(`model-${at}`, {
      upstream: "studio",
      pricing: {
        inputUsdMicrosPerMillionTokens: price,
        cachedInputUsdMicrosPerMillionTokens: price,
        outputUsdMicrosPerMillionTokens: price,
      },
    }),
  ),
});
const repeated = (text: string) => text.repeat(Math.floor(characters / text.length));

const drafts: Record<string, () => string> = {
  "a thousand models, each with other prices": () => stringify(catalogOf(1_000, 2_000_000)),
  "a thousand models that are gone": () => stringify(catalogOf(1, 1_000_000)),
  "many lines of one key": () => repeated("a: 1\n"),
  "deep brackets": () => repeated("["),
};

let watched: WatchedProcess;
let port: number;
let cookie: string;

beforeAll(async () => {
  watched = await startWatched(catalogOf(1_000, 1_000_000));
  port = Number(new URL(watched.baseUrl).port);
  cookie = await signIn(port, watched.adminToken);
});
afterAll(() => watched?.[Symbol.asyncDispose]());

const check = (yaml: string) =>
  askConsole(port, "/console/api/admin/catalog/check", {
    ...{ method: "POST", cookie, body: { yaml } },
    headers: ownPage,
  });

test("no draft keeps the event loop for 50 ms", { timeout: 300_000 }, async () => {
  await check("models: 7");
  const found: [string, number][] = [];
  for (const [name, make] of Object.entries(drafts)) {
    const yaml = make();
    let leastMs = Number.POSITIVE_INFINITY;
    for (let round = 0; round < rounds && leastMs > mostMs / 2; round++) {
      await watched.worstDelayMs();
      const { status } = await check(yaml);
      expect([200, 503], name).toContain(status);
      leastMs = Math.min(leastMs, await watched.worstDelayMs());
    }
    found.push([name, leastMs]);
    process.stdout.write(`${leastMs.toFixed(0).padStart(6)} ms  ${name}\n`);
  }
  expect(found.filter(([, ms]) => ms > mostMs * slowness())).toEqual([]);
});

test("a verdict on a thousand models tells of each, and of their fields as many as have room", async () => {
  const { json, text } = await check(stringify(catalogOf(1_000, 2_000_000)));
  expect(json).toMatchObject({ ok: true, models: 1_000, isShortened: false });
  expect(json.changes).toHaveLength(1_000);
  expect(json.changes[0].fields.length).toBeGreaterThan(0);
  expect(text.length).toBeLessThan(mib);
});
