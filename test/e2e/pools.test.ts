import { afterAll, expect, test } from "vitest";
import { chanceOf } from "../support/chance.ts";
import {
  type Behaviour,
  type ScriptedUpstream,
  startScriptedUpstream,
} from "../support/scripted-upstream.ts";
import type { Caller } from "./caller.ts";
import { chat } from "./catalog.ts";
import { oneProcessOnly, startWorld } from "./world.ts";

/** The seed of everything that this file leaves to chance. */
const chance = chanceOf(20_261_129);
const names = ["east", "north", "west"] as const;
type Name = (typeof names)[number];
/** Milliseconds for which an upstream may be silent. Far more than a good answer takes on a busy machine. */
const silenceMs = 4_000;

const doubles = {} as Record<Name, ScriptedUpstream>;
for (const name of names) doubles[name] = await startScriptedUpstream();
const ports = Object.fromEntries(
  names.map((name) => [name, Number(new URL(doubles[name].baseUrl).port)]),
);

const world = await startWorld({
  catalog: (usual) => {
    const at = (name: Name, keys: string[]) => ({
      ...{ protocol: "openai", baseUrl: doubles[name].baseUrl, apiKeyEnvs: keys },
      ...{ idleTimeoutMs: silenceMs, timeoutMs: 4 * silenceMs },
    });
    const changed = {
      ...usual,
      upstreams: {
        ...usual.upstreams,
        east: at("east", ["UP_KEY"]),
        north: at("north", ["UP_KEY", "BACKUP_KEY"]),
        west: at("west", ["BACKUP_KEY"]),
      },
      pools: {
        three: {
          members: [
            { upstream: "east", weight: 2 },
            { upstream: "north", weight: 3 },
            { upstream: "west", weight: 1 },
          ],
        },
      },
      models: [...usual.models, chat("pooled", { upstream: "three", upstreamModel: "up-model" })],
    };
    return changed;
  },
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  for (const name of names) await doubles[name].close();
});
oneProcessOnly();

/** A fault of an upstream. */
type Fault = Exclude<Behaviour, string> | "closed";
const status = (code: number, more: object = {}): Behaviour => ({
  ...{ kind: "status", status: code },
  ...more,
});
const silence: Behaviour = { kind: "hang" };
/** In the order in which they have their turn. */
const faults: readonly Fault[] = [
  ...["closed", { kind: "drop" }, status(401), status(429, { headers: { "retry-after": "2" } })],
  ...[silence, status(402), status(429, { code: "insufficient_quota" }), status(503)],
  ...["closed", silence],
] as const;
/** Faults that stand beside others. A silent upstream may have begun, so that others must not be asked behind it. */
const besides = faults.flatMap((fault) => (fault === silence || fault === "closed" ? [] : [fault]));

/** An upstream's part in a request. */
interface Asked {
  name: Name;
  how: "answered" | "silent" | "refused";
}
/** By the request's own mark, in the order of asking. */
const asked = new Map<string, Asked[]>();
/** USD micros that the upstreams bill, by the request's mark. */
const bills = new Map<string, number>();

/** Plays a fault at an upstream. Undefined: it answers, and bills each answer another amount. */
function play(name: Name, fault: Behaviour | undefined): void {
  doubles[name].script(({ body }) => {
    const mark = /r\d+-c\d+/.exec(JSON.stringify(body.input))?.[0] ?? "";
    const how = !fault ? "answered" : fault === silence ? "silent" : "refused";
    asked.set(mark, [...(asked.get(mark) ?? []), { name, how }]);
    if (fault) return fault;
    const [input, output] = [1 + chance.int(90), 1 + chance.int(90)];
    // One micro for a token of input, four for one of output.
    bills.set(mark, (bills.get(mark) ?? 0) + input + 4 * output);
    const tokens = { input_tokens: input, output_tokens: output, total_tokens: input + output };
    return { kind: "ok", usage: tokens };
  });
}

/** Sets the state of all upstreams for a round. At least one of them answers. */
async function turn(round: number): Promise<void> {
  const fault = faults[round] ?? silence;
  const bad = names[round % 3] as Name;
  const beside = names[(round + 1) % 3] as Name;
  for (const name of names) {
    const mustOpen = name !== bad || fault !== "closed";
    if (mustOpen && isClosed.delete(name)) {
      doubles[name] = await startScriptedUpstream({ port: ports[name] ?? 0 });
    }
    play(name, undefined);
  }
  if (fault === "closed") {
    isClosed.add(bad);
    await doubles[bad].close();
  } else play(bad, fault);
  if (round % 2 === 0 && fault !== silence) play(beside, chance.pick(besides));
}
const isClosed = new Set<Name>();

/** The upstream of a lane. */
const nameOf = (lane: string) => lane.replace(/#.*/, "");

/** One request. Answers its mark and its status. */
async function ask(caller: Caller, mark: string, isStream: boolean) {
  const body = { model: "pooled", input: `Hi, this is ${mark}.`, stream: isStream };
  const answer = await caller.post("/responses", body);
  const isWhole = !isStream || answer.text.includes("response.completed");
  return { mark, status: answer.status, isWhole };
}

/** The journal's records of an account's requests, as an operator reads them, by the upstream that served each. */
async function recordsOf({ accountId }: Caller) {
  const told = { accountId, onlyMoney: true, pageSize: 100, forOperator: true };
  const { lines } = await world.admin.billing.listLines(told);
  return lines.flatMap(({ record, amount }) => (record ? [{ ...record, amount }] : []));
}

test("while upstreams of a pool fail in turn, every request is served once that one of them could serve", async () => {
  const callers = await Promise.all(Array.from({ length: 50 }, () => world.caller()));
  const marksOf = new Map(callers.map((caller): [Caller, string[]] => [caller, []]));
  const ended: Awaited<ReturnType<typeof ask>>[] = [];
  for (const [round, fault] of faults.entries()) {
    // Now and then all rests end.
    if (round % 3 === 0 || fault === silence) await world.later(600_000);
    await turn(round);
    const asking = callers.map((caller, at) => {
      const mark = `r${round}-c${at}`;
      marksOf.get(caller)?.push(mark);
      return ask(caller, mark, at % 2 === 0);
    });
    ended.push(...(await Promise.all(asking)));
  }

  const silent = ended.filter(({ mark }) => asked.get(mark)?.some(({ how }) => how === "silent"));
  const others = ended.filter((one) => !silent.includes(one));
  expect(others.filter(({ status: code, isWhole }) => code !== 200 || !isWhole)).toEqual([]);
  // A silent upstream may work on them, so that no other is asked. It is left alone soon.
  expect(silent.length).toBeGreaterThan(0);
  expect(silent.map(({ status: code }) => code)).toEqual(silent.map(() => 504));
  for (const { mark } of silent) expect(asked.get(mark)?.at(-1)?.how).toBe("silent");
  // None is generated twice.
  for (const { mark } of ended) {
    const times = asked.get(mark)?.filter(({ how }) => how !== "refused").length;
    expect([mark, times]).toEqual([mark, 1]);
  }

  // Charges and bills agree, to the micro.
  let charged = 0;
  for (const [caller, marks] of marksOf) {
    const billed = marks.reduce((sum, mark) => sum + (bills.get(mark) ?? 0), 0);
    const { available, reserved } = await caller.settled();
    expect([available, reserved]).toEqual([10_000_000 - billed, 0]);
    const records = await recordsOf(caller);
    expect(records.map(({ amount }) => -Number(amount)).reduce((a, b) => a + b, 0)).toBe(billed);
    charged += billed;
    // Each record names who served it, and who failed before.
    const served = marks.map((mark) => asked.get(mark) ?? []);
    const answered = served.filter((one) => one.at(-1)?.how === "answered");
    expect(records.map(({ upstream }) => nameOf(upstream)).sort()).toEqual(
      answered.map((one) => one.at(-1)?.name).sort(),
    );
    // It names who failed before, too. An upstream that could not be reached saw nothing of that.
    const tries = records.flatMap(({ failedTries }) => failedTries.map(({ lane }) => nameOf(lane)));
    for (const name of names) {
      const refused = answered.flat().filter((one) => one.name === name && one.how === "refused");
      const told = tries.filter((one) => one === name).length;
      expect(told).toBeGreaterThanOrEqual(refused.length);
    }
  }
  expect(charged).toBeGreaterThan(0);
});
