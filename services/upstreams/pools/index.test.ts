import { beforeEach, describe, expect, test } from "vitest";
import { createMetrics, type Metrics } from "#kit/base/metrics.ts";
import { type ManualClock, manualClock } from "#kit/time/clock.ts";
import { createPools, type Pools, type Try } from "./index.ts";
import { lane } from "./lanes.fixture.ts";
import { type Outcome, outcomes } from "./outcomes.ts";

let clock: ManualClock;
let metrics: Metrics;
let refused: [string, string][];
let pools: Pools;
beforeEach(() => {
  clock = manualClock();
  metrics = createMetrics();
  refused = [];
  const accounts = { empty() {}, keyRefused: (...told: [string, string]) => refused.push(told) };
  pools = createPools({ clock, metrics, accounts });
});

const alone = [lane("a")];
const [a, b] = [lane("a", { level: 0 }), lane("b", { level: 1 })];
const nameOf = (one: Try | undefined) => one?.lane.upstream.name;
/** The lane that a request is sent to first. The request stays under way. */
const first = (lanes = [a, b], model = "m") => nameOf(pools.tries(lanes, model, "s").next());

/** Ends a try at lane a. */
function end(outcome: Outcome, askedMs?: number, model = "m"): void {
  pools.tries(alone, model, "s").next()?.ended(outcome, askedMs);
}

/** Seconds for which lane a rests. */
const restSeconds = (model = "m") => pools.restMs(a, model) / 1_000;

async function valuesOf(name: string) {
  const reading = await metrics.readOne(name);
  return reading?.values.map(({ labels, value }) => [...Object.values(labels), value]);
}

describe("the next lane is tried", () => {
  test.each<[Outcome, boolean]>([
    ["failed", true],
    ["limited", true],
    ["over_limit", true],
    ["account_empty", true],
    ["key_refused", true],
    ["region_refused", true],
    ["model_missing", true],
    ["full", true],
    ["answered", false],
    ["refused", false],
    ["perhaps_paid", false],
    ["open", false],
  ])("after %s: %s", (outcome, mayMove) => {
    expect(pools.tries(alone, "m", "s").next()?.ended(outcome)).toBe(mayMove);
    expect(outcomes[outcome].mayMove).toBe(mayMove);
  });

  test("four lanes at most, each once", () => {
    const lanes = ["a", "b", "c", "d", "e"].map((name) => lane(name));
    const tries = pools.tries(lanes, "m", "s");
    const names = [0, 1, 2, 3].map(() => nameOf(tries.next()));
    expect(new Set(names).size).toBe(4);
    expect(tries.next()).toBeUndefined();
    expect(tries.count).toBe(4);
  });
});

describe("a lane rests", () => {
  test.each<[Outcome, number[]]>([
    ["limited", [5, 10, 20, 40, 60, 60]],
    ["account_empty", [60, 120, 240, 480, 600, 600]],
    ["key_refused", [60, 60]],
    ["region_refused", [60, 60]],
    ["model_missing", [60, 60]],
  ])("after %s for %j seconds, each time that it fails again", async (outcome, seconds) => {
    for (const one of seconds) {
      end(outcome);
      expect(restSeconds()).toBe(one);
      expect(first()).toBe("b");
      await clock.advance(one * 1_000);
      expect(restSeconds()).toBe(0);
    }
    end("answered");
    end(outcome);
    expect(restSeconds()).toBe(seconds[0]);
  });

  test.each<Outcome>(["failed", "perhaps_paid"])(
    "after three times %s in a row",
    async (outcome) => {
      end(outcome);
      end(outcome);
      end("answered");
      end(outcome);
      end(outcome);
      expect(restSeconds()).toBe(0);
      end(outcome);
      expect(restSeconds()).toBe(5);
      // One more failure is enough, as long as it has not worked again.
      for (const seconds of [10, 20, 40, 60, 60]) {
        await clock.advance(60_000);
        end(outcome);
        expect(restSeconds()).toBe(seconds);
      }
    },
  );

  test("where half of ten tries fail within a minute, and not before", async () => {
    for (let at = 0; at < 4; at++) {
      end("answered");
      end("failed");
    }
    end("answered");
    expect(restSeconds()).toBe(0);
    end("failed");
    expect(restSeconds()).toBe(5);
  });

  test("not where the same tries took longer than a minute", async () => {
    for (let at = 0; at < 5; at++) {
      end("answered");
      end("failed");
      await clock.advance(20_000);
    }
    expect(restSeconds()).toBe(0);
  });

  test("for as long as a limit asks, from a second to a minute", async () => {
    for (const [asked, seconds] of [
      [0, 1],
      [7_000, 7],
      [3_600_000, 60],
    ] as const) {
      end("limited", asked);
      expect(restSeconds()).toBe(seconds);
      await clock.advance(60_000);
      end("answered");
    }
  });

  test("only a limit may ask for that", () => {
    end("account_empty", 1_000);
    expect(restSeconds()).toBe(60);
  });

  test.each<Outcome>(["answered", "refused", "over_limit", "full", "open"])(
    "never after %s",
    (outcome) => {
      for (let at = 0; at < 20; at++) end(outcome);
      expect(restSeconds()).toBe(0);
      expect(first()).toBe("a");
    },
  );

  test("for the model alone that it lacks", () => {
    end("model_missing");
    expect([restSeconds("m"), restSeconds("other")]).toEqual([60, 0]);
    expect([first([a, b], "m"), first([a, b], "other")]).toEqual(["b", "a"]);
  });

  test("once for many requests that failed together", () => {
    const tries = Array.from({ length: 10 }, () => pools.tries(alone, "m", "s").next());
    for (const one of tries) one?.ended("limited");
    expect(restSeconds()).toBe(5);
  });

  test("though a request that began before is answered", () => {
    const before = pools.tries(alone, "m", "s").next();
    end("limited");
    before?.ended("answered");
    expect(restSeconds()).toBe(5);
  });

  test("once for many answers that broke off together", () => {
    for (let at = 0; at < 20; at++) pools.brokeOff("a");
    expect(restSeconds()).toBe(5);
  });

  test("no shorter because an answer breaks off meanwhile", () => {
    end("account_empty");
    for (let at = 0; at < 5; at++) pools.brokeOff("a");
    expect(restSeconds()).toBe(60);
  });

  test("where half of its answers break off", () => {
    for (let at = 0; at < 5; at++) {
      const one = pools.tries(alone, "m", "s").next();
      one?.ended("answered");
      pools.brokeOff("a");
    }
    expect(restSeconds()).toBe(5);
  });
});

describe("after a rest", () => {
  test("one request at a time finds out whether the lane works, until one does", async () => {
    end("limited");
    await clock.advance(5_000);
    const probe = pools.tries([a, b], "m", "s").next();
    expect(nameOf(probe)).toBe("a");
    expect(first()).toBe("b");
    probe?.ended("answered");
    expect([first(), first()]).toEqual(["a", "a"]);
  });

  test("a request that says nothing lets the next one try", async () => {
    end("limited");
    await clock.advance(5_000);
    pools.tries([a, b], "m", "s").next()?.ended("open");
    const next = pools.tries([a, b], "m", "s").next();
    expect(nameOf(next)).toBe("a");
    expect(first()).toBe("b");
  });
});

test("a slow request that tries a lane keeps others from it for 5 seconds, and no longer", async () => {
  end("limited");
  await clock.advance(5_000);
  expect(first()).toBe("a");
  await clock.advance(4_999);
  expect(first()).toBe("b");
  await clock.advance(1);
  expect([first(), first()]).toEqual(["a", "b"]);
});

describe("a lane that fails", () => {
  /** A request that fails at lane a, and then ends so at lane b. */
  const failThen = (outcome: Outcome) => {
    const tries = pools.tries([a, b], "m", "s");
    tries.next()?.ended("failed");
    tries.next()?.ended(outcome);
  };

  test("rests where another one answers the same requests", () => {
    for (let at = 0; at < 3; at++) failThen("answered");
    expect(restSeconds()).toBe(5);
  });

  test.each<Outcome>(["failed", "refused", "limited", "perhaps_paid", "open"])(
    "does not rest because of requests that are then %s elsewhere",
    (outcome) => {
      for (let at = 0; at < 20; at++) failThen(outcome);
      expect(restSeconds()).toBe(0);
    },
  );

  test("lets others try it again once its request is over", async () => {
    end("limited");
    await clock.advance(5_000);
    failThen("failed");
    await clock.advance(60_000);
    expect([first(), first()]).toEqual(["a", "b"]);
  });
});

test("an upstream without a free place is left out with all its keys", () => {
  const lanes = ["main", "main#2", "main#3", "other"].map((name, level) => lane(name, { level }));
  const tries = pools.tries(lanes, "m", "s");
  const one = tries.next();
  expect([nameOf(one), one?.ended("full")]).toEqual(["main", true]);
  expect(nameOf(tries.next())).toBe("other");
  expect(tries.hasNext).toBe(false);
});

test("work may begin at a lane that does not rest, and at one whose rest nobody tries", async () => {
  expect(pools.isAwake(a, "m")).toBe(true);
  end("limited");
  expect(pools.isAwake(a, "m")).toBe(false);
  await clock.advance(5_000);
  expect(pools.isAwake(a, "m")).toBe(true);
  first();
  expect(pools.isAwake(a, "m")).toBe(false);
});

describe("where all lanes rest", () => {
  const lanes = ["a", "b", "c"].map((name) => lane(name));
  const rest = (name: string, ms: number) => {
    const only = lanes.filter(({ upstream }) => upstream.name === name);
    pools.tries(only, "m", "s").next()?.ended("limited", ms);
  };

  test("the one that is free soonest is asked, then the next", () => {
    rest("a", 20_000);
    rest("b", 3_000);
    rest("c", 9_000);
    const tries = pools.tries(lanes, "m", "s");
    expect([1, 2, 3, 4].map(() => nameOf(tries.next()))).toEqual(["b", "c", "a", undefined]);
  });

  test("a lane that wakes meanwhile comes before those that rest", async () => {
    rest("a", 20_000);
    rest("b", 3_000);
    rest("c", 9_000);
    const tries = pools.tries(lanes, "m", "s");
    expect(nameOf(tries.next())).toBe("b");
    await clock.advance(20_000);
    expect(nameOf(tries.next())).not.toBe("b");
  });
});

test("a resting lane moves its own conversations alone", () => {
  const lanes = ["a", "b", "c"].map((name) => lane(name));
  const sticks = Array.from({ length: 1_000 }, (_, at) => `s${at}`);
  const homeOf = (stick: string) => {
    const one = pools.tries(lanes, "m", stick).next();
    one?.ended("answered");
    return nameOf(one);
  };
  const homes = new Map(sticks.map((stick) => [stick, homeOf(stick)]));
  end("limited");
  for (const stick of sticks) {
    const home = homes.get(stick);
    if (home === "a") expect(homeOf(stick)).not.toBe("a");
    else expect(homeOf(stick)).toBe(home);
  }
});

test("two replicas send a conversation to the same lane", () => {
  const other = createPools({ clock, metrics: createMetrics() });
  const lanes = ["a", "b", "c"].map((name) => lane(name));
  for (let at = 0; at < 1_000; at++) {
    const [one, two] = [pools, other].map((each) => each.tries(lanes, "m", `s${at}`).next());
    expect(nameOf(one)).toBe(nameOf(two));
  }
});

describe("is counted", () => {
  test("a lane's rest, until its end", async () => {
    end("limited");
    expect(await valuesOf("genmesh_upstream_resting")).toEqual([["a", "limited", 1]]);
    await clock.advance(5_000);
    expect(await valuesOf("genmesh_upstream_resting")).toEqual([["a", "limited", 0]]);
  });

  test("each try, by its outcome", async () => {
    end("failed");
    end("answered");
    end("answered");
    expect(await valuesOf("genmesh_upstream_attempts_total")).toEqual([
      ["a", "failed", 1],
      ["a", "answered", 2],
    ]);
  });

  test("a request that another lane answers, by what kept it from its own", async () => {
    const tries = pools.tries([a, b], "m", "s");
    tries.next()?.ended("limited");
    tries.next()?.ended("answered");
    pools.tries([a, b], "m", "s").next()?.ended("answered");
    expect(await valuesOf("genmesh_upstream_moved_total")).toEqual([["limited", 2]]);
  });

  test("a refused key, by the name of what holds it", () => {
    end("key_refused");
    expect(refused).toEqual([["a", "KEY"]]);
  });
});
