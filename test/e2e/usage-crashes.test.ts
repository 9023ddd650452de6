import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import { MongoClient } from "mongodb";
import { describe, expect, test } from "vitest";
import { Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { maxRunningMs } from "../../services/media/limits.ts";
import { sampleMp3, sampleMp4, samplePng } from "../../services/upstreams/media/samples.fixture.ts";
import { signIn, untilBuilt } from "../console/screens.ts";
import { compareConsole } from "../console/tables.ts";
import { findBackend } from "../support/backends.ts";
import { chromiumPath, openBrowser, openPage } from "../support/browser.ts";
import { startScriptedMediaUpstream } from "../support/scripted-media-upstream.ts";
import { closedBaseUrl, startScriptedUpstream } from "../support/scripted-upstream.ts";
import { until } from "../support/until.ts";
import { type Caller, createCaller } from "./caller.ts";
import { testCatalog } from "./catalog.ts";
import { type Document, withMedia } from "./media-world.ts";
import { type HostProcess, startProcess } from "./process.ts";
import { compareViews, pagesOf } from "./usage-views.ts";
import { isOwnWorld, ownWorldOnly } from "./world.ts";

ownWorldOnly();

/** A new seed on each run. A failed test has it in its name, and this variable repeats it. */
const seed = Number(process.env.GENMESH_TEST_SEED ?? Math.floor(Math.random() * 1_000_000_000));
/** The number of kills, the actions before each, and how many run at once. */
const [crashes, actionsEach, atOnce] = [3, 24, 6];
/** Milliseconds after the end of an action, at most, until the process is killed. */
const killWithinMs = 250;
/** Longer than the lease of a dead process's requests (30 s), plus some rounds of the sweep. */
const leaseOverMs = 40_000;
/** Longer than the time of a job whose upstream may or may not have begun it. */
const jobsOverMs = maxRunningMs + 60_000;
/** Milliseconds. On a busy machine, starts take most of it. */
const timeout = 240_000;
const daySeconds = 86_400;
/** Milliseconds above the length of a run by its processes' clock. At crashes that clock is set ahead by more than half an hour. */
const runMs = 3_600_000;

/** A usage whose parts have prices of their own. */
const usage = {
  ...{ input_tokens: 20, output_tokens: 5, total_tokens: 25 },
  input_tokens_details: {
    ...{ cached_tokens: 4, cache_write_tokens: 6, audio_tokens: 3, image_tokens: 2 },
    cache_write_tokens_details: { ttl_30m_tokens: 5, ttl_12h_tokens: 1 },
  },
  output_tokens_details: { audio_tokens: 1, image_tokens: 2 },
  server_tool_use: { web_search_requests: 2 },
};
const pricing = {
  inputUsdMicrosPerMillionTokens: 1_000_000,
  cachedInputUsdMicrosPerMillionTokens: 100_000,
  outputUsdMicrosPerMillionTokens: 4_000_000,
  cacheWriteUsdMicrosPerMillionTokens: 1_250_000,
  cacheWriteLongUsdMicrosPerMillionTokens: 2_000_000,
  audioInputUsdMicrosPerMillionTokens: 7_000_000,
  imageOutputUsdMicrosPerMillionTokens: 30_000_000,
  toolCalls: { web_search: 300 },
  upstreamCost: {
    inputUsdMicrosPerMillionTokens: 900_000,
    outputUsdMicrosPerMillionTokens: 3_000_000,
    toolCalls: { web_search: 200 },
  },
};

const { url: mongoUrl, note } = isOwnWorld
  ? await findBackend("mongodb")
  : { url: undefined, note: "" };

describe("one set of numbers, for all that was asked for and wherever the process was killed", () => {
  test(`on SQLite (seed ${seed})`, { timeout }, () => run({}));
  test.skipIf(mongoUrl === undefined)(`on MongoDB${note} (seed ${seed})`, { timeout }, async () => {
    const url = new URL(mongoUrl ?? "");
    url.pathname = `/genmesh-numbers-${randomBytes(6).toString("hex")}`;
    await using client = new MongoClient(url.href);
    await using stack = new AsyncDisposableStack();
    stack.defer(async () => void (await client.db().dropDatabase()));
    await run({ GENMESH_DATABASE_URL: url.href });
  });
});

async function run(env: Readonly<Record<string, string>>): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "genmesh-numbers-"));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const random = randomOf(seed);
  const upstream = stack.use(await startScriptedUpstream());
  const outputs = {
    images: [await samplePng(64, 64)],
    video: sampleMp4({ width: 854, height: 480 }),
    sound: sampleMp3(),
  };
  const media = stack.use(await startScriptedMediaUpstream("openai", outputs));
  media.wording.runningLooks = 0;
  upstream.script({ kind: "ok", firstByteDelayMs: 5, deltaDelayMs: 5, usage });
  const usual = testCatalog({
    ...{ main: upstream.baseUrl, backup: upstream.baseUrl },
    nowhere: await closedBaseUrl(),
  });
  const catalogFile = join(folder, "catalog.json");
  for (const model of usual.models) if (model.id === "scripted") model.pricing = pricing;
  await writeFile(catalogFile, JSON.stringify(withMedia(usual, media.baseUrl)));
  const dataDir = join(folder, "data");
  await mkdir(dataDir);

  let aheadMs = isEndNear() ? runMs : 0;
  let host: HostProcess | undefined;
  stack.defer(() => host?.kill());
  const start = async () => {
    host = await startProcess({ dataDir, catalogFile, aheadMs, env });
    return host;
  };
  const today = Math.floor((Date.now() + aheadMs) / 1_000 / daySeconds) * daySeconds;
  const fromSeconds = today - 6 * daySeconds;

  let running = await start();
  const secrets = await makeKeys(running);
  const callersOf = ({ baseUrl }: HostProcess) =>
    secrets.map(({ key, ...who }) => createCaller({ baseUrl, key, ...who }, () => {}));
  let made = 0;
  const drive = async (actions: number, signal: AbortSignal, onEnd: (ended: number) => void) => {
    let [begun, ended] = [0, 0];
    const [all, ...keys] = callersOf(running);
    if (!all) throw new Error("no key");
    const work = async () => {
      while (begun < actions && !signal.aborted) {
        begun++;
        const caller = keys[Math.floor(random() * keys.length)] ?? all;
        const one = { host: running, all, caller, random, number: ++made, fail };
        await act(one).catch((error) => {
          // An action of a killed process may fail so, and an overloaded store is away for moments.
          if (!signal.aborted && !isAway(error)) throw error;
        });
        onEnd(++ended);
      }
    };
    await Promise.all(Array.from({ length: atOnce }, work));
  };
  const fail = (shallFail: boolean) =>
    media.always(
      "POST /images/generations",
      shallFail ? { kind: "status", status: 400 } : undefined,
    );

  for (let crash = 0; crash < crashes; crash++) {
    const dying = new AbortController();
    const killAfter = 1 + Math.floor(random() * (actionsEach - atOnce));
    const killDelayMs = random() * killWithinMs;
    const reached = Promise.withResolvers<void>();
    const driving = drive(actionsEach, dying.signal, (ended) => {
      if (ended === killAfter) reached.resolve();
    });
    await Promise.race([reached.promise, driving]);
    await delay(killDelayMs);
    dying.abort();
    await running.kill();
    await driving;
    aheadMs += crash === crashes - 1 ? jobsOverMs : leaseOverMs;
    running = await start();
  }
  await drive(actionsEach, new AbortController().signal, () => {});
  fail(false);
  const [all, ...keys] = callersOf(running);
  if (!all) throw new Error("no key");
  const textOfBigInt = (_: string, value: unknown) =>
    typeof value === "bigint" ? `${value}` : value;
  const holds = async () => (await running.billing.listHolds({})).holds;
  await until("the ends of all holds", async () => (await holds()).length === 0, {
    ...{ withinMs: 60_000, everyMs: 200 },
  }).catch(async (error) => {
    const jobs = await Promise.all(keys.map((key) => pagesOf(key, "/jobs?limit=100")));
    const open = jobs.flat().filter(({ terminal }) => !terminal);
    throw new Error(`${error.message}: ${JSON.stringify([await holds(), open], textOfBigInt)}`);
  });

  const isCounted = async () => (await all.get("/requests")).status === 200;
  await until("usage to be counted", isCounted, { withinMs: 60_000, everyMs: 200 });
  const truth = await compareViews(running, { all, keys, fromSeconds });
  expect(truth.ended.length).toBeGreaterThan(actionsEach / 2);
  if (chromiumPath === undefined) return;
  const { origin } = new URL(running.baseUrl);
  await untilBuilt(origin);
  const browser = await openBrowser();
  stack.defer(() => browser.close());
  const { page, faults } = await openPage(browser);
  // The page's "today" is that of the process.
  await page.addInitScript((ms) => {
    const now = Date.now.bind(Date);
    Date.now = () => now() + ms;
  }, aheadMs);
  await signIn(page, origin, all.key);
  await compareConsole(page, origin, { all, truth, fromSeconds });
  expect(faults).toEqual([]);
  expect(await running.stop()).toBe(0);
  host = undefined;
}

/** Would a week or a month (UTC) end during a run that began now? The charges would be in two of them, and the test compares with one. */
function isEndNear(): boolean {
  const now = new Date();
  const [year, month, date] = [now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate()];
  const daysSinceMonday = (now.getUTCDay() + 6) % 7;
  const ends = [Date.UTC(year, month, date + 7 - daysSinceMonday), Date.UTC(year, month + 1, 1)];
  return ends.some((end) => end - now.getTime() < runMs);
}

function isAway(error: unknown): boolean {
  return (
    ConnectError.from(error).code === Code.Unavailable ||
    /service_unavailable|: 503 /.test(String(error))
  );
}

/** A key that sees the account's numbers, and two with charges. */
async function makeKeys({ caller, auth, billing }: HostProcess) {
  const { accountId } = (await caller.get("/key")).json.data;
  await billing.grant({ accountId, unit: Unit.CREDITS, amount: 500n, operationId: "credits" });
  const every = Object.values(Scope).filter((scope) => typeof scope === "number" && scope > 0);
  const make = async (name: string, scopes: Scope[]) => {
    const { key, secret } = await auth.createKey({ accountId, name, scopes });
    return { accountId, keyId: key?.keyId ?? "", key: secret };
  };
  return [
    await make("sees all", every as Scope[]),
    await make("pays first", []),
    await make("pays second", []),
  ];
}

interface Action {
  host: HostProcess;
  all: Caller;
  caller: Caller;
  random: () => number;
  number: number;
  /** The upstream's answer to image requests from now on. */
  fail(shallFail: boolean): void;
}

/** Does one request, job, speech, grant or refund, and waits for its end. */
async function act({ host, all, caller, random, number, fail }: Action): Promise<void> {
  const text = { model: "scripted", input: "Hi" };
  const chat = { model: "scripted", messages: [{ role: "user", content: "Hi" }] };
  const submitted = async (area: "images" | "videos", body: object) => {
    const { status, json, text: said } = await caller.post(`/${area}/generations`, body);
    if (status !== 202) throw new Error(said);
    return json;
  };
  const job = async (area: "images" | "videos", body: object) => {
    const json = await submitted(area, body);
    if (random() < 0.5) return;
    const path = new URL(json.statusUrl).pathname.slice("/v1".length);
    await until("the job", async () => (await caller.get(path)).json.terminal, {
      ...{ withinMs: 60_000, everyMs: 50 },
    });
  };
  const boat = { model: "scripted-image", prompt: "a boat" };
  const { accountId } = all;
  const actions: (() => Promise<unknown>)[] = [
    () => caller.post("/responses", text),
    () => caller.stream("/responses", text),
    () => caller.post("/responses", text, { idempotencyKey: `again-${number % 5}` }),
    () => caller.post("/chat/completions", chat),
    () => caller.stream("/chat/completions", chat),
    () => caller.post("/responses", { ...text, model: "nowhere" }),
    async () => {
      const stream = await caller.open("/responses", text);
      await stream.until(({ data }) => data.includes("output_text.delta"));
      stream.leave();
    },
    () =>
      caller.post("/speech/generations", {
        ...{ model: "scripted-speech", input: `Hello ${number}`, voice: "alloy" },
      }),
    () => job("images", { ...boat, n: 1 }),
    () => job("images", { ...boat, n: 2 }),
    () => job("videos", { model: "text-only", prompt: "a pier" }),
    async () => {
      const { id } = await submitted("images", boat);
      const cancelled = await caller.post(`/images/generations/${id}/cancel`, {});
      // 409 means that the job has ended before.
      if (cancelled.status >= 500) throw new Error(cancelled.text);
    },
    async () => {
      fail(true);
      await job("images", { ...boat, n: 1 });
      fail(false);
    },
    () =>
      host.billing.grant({
        ...{ accountId, unit: Unit.USD_MICROS, amount: 1_000n, operationId: `more-${number}` },
      }),
    async () => {
      const { status, json, text: said } = await all.get("/billing/entries?kind=charge&limit=100");
      // A slow store is still counting the others' last charges.
      if (status === 503) return;
      if (status !== 200) throw new Error(said);
      const charges: Document[] = json.data;
      const charge = charges[Math.floor(random() * charges.length)];
      if (!charge) return;
      const [, unit, entry] = /^(\w+)-(\d+)$/.exec(charge.id) ?? [];
      const refund = {
        ...{ accountId, entryNumber: BigInt(entry ?? 0), operationId: `back-${number}` },
        unit: unit === "credits" ? Unit.CREDITS : Unit.USD_MICROS,
        ...(random() < 0.5 ? { amount: 1n } : {}),
      };
      const given = host.billing.refund(refund).catch((error) => {
        // The charge was refunded before, which is possible only once.
        if (ConnectError.from(error).code !== Code.FailedPrecondition) throw error;
      });
      await given;
    },
  ];
  await actions[Math.floor(random() * actions.length)]?.();
}

/** Numbers from 0 up to 1, the same for a seed. */
function randomOf(from: number): () => number {
  let state = from % 2 ** 32;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32;
    return state / 2 ** 32;
  };
}
