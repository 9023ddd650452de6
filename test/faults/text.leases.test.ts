import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { openSqlite } from "#kit/store/sqlite.ts";
import { type ManualClock, manualClock } from "#kit/time/clock.ts";
import { createLedgerStore } from "../../services/billing/index.ts";
import { createSqliteUsageStore } from "../../services/text/store/store-sqlite.ts";
import { events, type Feed, feed, scriptedUpstreams } from "../contract/usage.upstream.ts";
import { createTextWorld, principal, type TextWorld } from "../contract/usage.world.ts";
import { chanceOf } from "../support/chance.ts";
import { checkLedger, gatherer } from "../support/laws.ts";

/** The price of an answer with the usage that these upstreams report, in USD micros. */
const cost = 311n;
const beatMs = 2_000;
/** Longer than every lease, check time and round of a sweep. */
const quietMs = 240_000;

/** A process. A stalled one makes no step, and its clock does not move until it wakes. */
interface Owner {
  world: TextWorld;
  clock: ManualClock;
  missedMs: number | undefined;
}

interface Request {
  owner: Owner;
  keyId: string;
  startedAt: number;
  feed: Feed | undefined;
  hasEnded: boolean;
  /** The text that its caller got. Undefined while the caller reads. */
  text: string | undefined;
  /** The age in ms at which its process was killed, where it had not ended. */
  killedAt: number | undefined;
}

/** Several processes over one database. They are killed, pause and lose messages, all by chance. */
async function run(seed: number): Promise<{ breaches: string[]; seen: Record<string, number> }> {
  const chance = chanceOf(seed);
  const folder = await mkdtemp(join(tmpdir(), "genmesh-leases-"));
  const file = join(folder, "genmesh.db");
  const requests: Request[] = [];
  const dispatched = new Map<string, Feed>();
  const seen: Record<string, number> = {};
  const note = (what: string) => {
    seen[what] = (seen[what] ?? 0) + 1;
  };
  let isCalm = true;
  const between: Interceptor = (next) => async (request) => {
    if (isCalm || request.method.name !== "Apply" || request.stream) return next(request);
    const roll = chance.int(100);
    if (roll < 12) throw new ConnectError("lost", Code.Unavailable);
    const response = await next(request);
    if (roll < 24) throw new ConnectError("its reply is lost", Code.Unavailable);
    return response;
  };
  const upstreams = scriptedUpstreams(async ({ signal, body }) => {
    const own = feed(signal);
    dispatched.set(String(body.input), own);
    own.push(events.begin());
    return own.answer;
  });
  let now = manualClock().now();
  const owners: Owner[] = [];
  const worlds: TextWorld[] = [];
  const open = async (isNew = false) => {
    const clock = manualClock(now);
    const world = await createTextWorld({ upstreams, file, isNew, clock, between });
    worlds.push(world);
    owners.push({ world, clock, missedMs: undefined });
  };
  await open(true);
  await open();
  isCalm = false;

  const awake = () => owners.filter(({ missedMs }) => missedMs === undefined);
  const wake = async (owner: Owner) => {
    const missed = owner.missedMs ?? 0;
    owner.missedMs = undefined;
    await owner.clock.leap(missed);
  };
  const pass = async (ms: number) => {
    now += ms;
    for (const owner of owners) {
      if (owner.missedMs === undefined) await owner.clock.advance(ms);
      else owner.missedMs += ms;
    }
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
  };
  const begin = () => {
    const owner = chance.pick(awake());
    if (!owner) return;
    const keyId = `key_${requests.length}`;
    const body = { model: "chat-1", input: keyId, stream: true };
    const key = chance.likely(30) ? { key: keyId } : {};
    const own = { accountId: principal.accountId, keyId };
    const stream = owner.world.stream("RESPONSES", body, { principal: own, ...key });
    const request: Request = {
      ...{ owner, keyId, startedAt: now, feed: undefined, hasEnded: false },
      ...{ text: undefined, killedAt: undefined },
    };
    requests.push(request);
    const read = async () => {
      let text = "";
      for (let piece = await stream.next(); piece !== undefined; piece = await stream.next()) {
        text += piece;
      }
      return text;
    };
    read().then(
      (text) => {
        request.text = text;
      },
      () => {
        request.text = "refused";
      },
    );
  };
  const speak = () => {
    const running = requests.filter(
      ({ hasEnded, owner }) => !hasEnded && owner.missedMs === undefined,
    );
    const one = chance.pick(running);
    const own = one && dispatched.get(one.keyId);
    if (!one || !own || !owners.includes(one.owner)) return;
    if (chance.likely(50)) own.push(events.delta("some words "));
    else {
      one.hasEnded = true;
      own.push(events.end());
    }
  };
  const kill = async () => {
    const owner = chance.pick(awake());
    if (!owner || worlds.length > 4) return;
    owners.splice(owners.indexOf(owner), 1);
    owner.world.die();
    for (const one of requests) {
      if (one.owner === owner && !one.hasEnded) one.killedAt = now - one.startedAt;
    }
    note("killed");
    await open();
  };
  for (let step = 0; step < 40; step++) {
    const roll = chance.int(100);
    if (roll < 25 && requests.length < 8) begin();
    else if (roll < 55) speak();
    else if (roll < 85) await pass(chance.pick([100, 600, 2_100, 5_000, 20_000, 70_000]));
    else if (roll < 90) await kill();
    else if (roll < 95) {
      const owner = chance.pick(awake());
      if (owner && awake().length > 1) owner.missedMs = 0;
    } else for (const owner of owners) await wake(owner);
    await pass(0);
  }
  isCalm = true;
  for (const owner of owners) await wake(owner);
  const endAll = () => {
    for (const one of requests) {
      const own = dispatched.get(one.keyId);
      if (!own || one.hasEnded || !owners.includes(one.owner)) continue;
      one.hasEnded = true;
      own.push(events.end());
    }
  };
  const sqlite = openSqlite(file);
  const rows = createSqliteUsageStore(sqlite);
  const ledger = createLedgerStore({ kind: "sqlite", sqlite });
  const wallet = { accountId: principal.accountId, unit: "usd_micros" } as const;
  for (let passed = 0; passed < quietMs; passed += 2_000) {
    // Work that waited for its hold begins first.
    endAll();
    await pass(2_000);
  }

  const { breaches, check } = gatherer();
  const { held, spent } = await ledger.wallet(wallet);
  check("every hold ends", held === 0n, { held });
  const left = await rows.due(Number.MAX_SAFE_INTEGER, 10);
  check("every row ends", left.length === 0, left);
  await checkLedger(ledger, principal.accountId, check);
  const entries = await ledger.entries(wallet, { limit: 1_000 });
  check("spent is the sum of charges", sum(entries) === spent, { spent });
  for (const one of requests) {
    const own = entries.filter(({ keyId }) => keyId === one.keyId);
    const charged = sum(own);
    const opened = own.find(({ kind }) => kind === "hold");
    const facts = { seed, ...one, owner: "", feed: "", charged };
    const isDispatched = dispatched.has(one.keyId);
    if (charged > 0n) check("charged: dispatched", isDispatched, facts);
    if (isDispatched) check("dispatched: held", opened !== undefined, facts);
    check("at most the hold", charged <= (opened?.heldDelta ?? 0n), facts);
    const charges = own.filter(({ spentDelta }) => spentDelta > 0n);
    check("charged once", charges.length <= 1, facts);
    const isWhole = one.text?.includes("response.completed") ?? false;
    if (isWhole) check("told whole: charged so", charged === cost, facts);
    if (one.killedAt !== undefined && one.killedAt < beatMs) {
      check("a short crash costs nothing", charged === 0n, facts);
    }
    const alive = owners.includes(one.owner);
    if (alive) check("its caller hears of the end", one.text !== undefined, facts);
    note(isWhole ? "whole" : charged > 0n ? "charged, not whole" : "free");
    if (own.some(({ kind, heldDelta }) => kind === "draw" && heldDelta === 0n)) note("late draw");
  }
  sqlite[Symbol.dispose]();
  // Killed processes keep their files open. A write that they had begun must not fail during the next run.
  for (const { world } of owners) await world[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
  return { breaches, seen };
}

function sum(entries: readonly { spentDelta: bigint }[]): bigint {
  return entries.reduce((total, { spentDelta }) => total + spentDelta, 0n);
}

/** A new seed on each run. The message of a failure has it, and writing it here repeats the run. */
const firstSeed = Number(process.env.SEED ?? Math.floor(Math.random() * 1_000_000_000));
const runs = Number(process.env.RUNS ?? 25);

test(`processes that die, stall and lose replies charge each request once (seed ${firstSeed})`, {
  timeout: 600_000,
}, async () => {
  const kinds = ["charged, not whole", "free", "killed", "late draw", "whole"];
  const all: Record<string, number> = {};
  const isAllSeen = () => Object.keys(all).length >= kinds.length;
  // Runs until all kinds of events came, even a rare late charge. Without them, agreement would mean little.
  for (let i = 0; i < runs || (!isAllSeen() && i < 10 * runs); i++) {
    const { breaches, seen } = await run(firstSeed + i);
    expect(breaches, `seed ${firstSeed + i}`).toEqual([]);
    for (const [what, count] of Object.entries(seen)) all[what] = (all[what] ?? 0) + count;
  }
  expect(Object.keys(all).sort()).toEqual(kinds);
});
