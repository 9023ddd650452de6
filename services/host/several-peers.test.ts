import { expect, test } from "vitest";
import { type OneOfSeveral, severalPeers } from "./several-peers.ts";

/** A pool of one address that counts its calls. */
function pool(origin: string) {
  const one = { up: true, picks: 0 };
  const asked: OneOfSeveral = {
    addresses: () => (one.up ? [origin] : []),
    rank: (tried) => (one.up ? 2 : 0) + (tried.includes(origin) ? 0 : 3),
    async pick() {
      one.picks++;
      return { dispatcher: {} as never, origin, going() {}, done() {} };
    },
  };
  return Object.assign(one, { asked });
}

const originOf = async (from: ReturnType<typeof severalPeers>, tried: string[] = []) =>
  (await from.pick(tried))?.origin;

test("calls are spread over all URLs", async () => {
  const pools = [pool("a"), pool("b"), pool("c")];
  const several = severalPeers(pools.map(({ asked }) => asked));
  for (let n = 0; n < 300; n++) (await several.pick([]))?.done("ok");
  for (const { picks } of pools) expect(picks).toBe(100);
});

test("the one with the fewest calls under way is next", async () => {
  const several = severalPeers([pool("a").asked, pool("b").asked]);
  const [first, second] = [await several.pick([]), await several.pick([])];
  expect(new Set([first?.origin, second?.origin]).size).toBe(2);
  second?.done("ok");
  for (let n = 0; n < 3; n++) {
    const next = await several.pick([]);
    expect(next?.origin).toBe(second?.origin);
    next?.done("failed");
  }
});

test("one that is down, or was tried, is taken only where there is no other", async () => {
  const [a, b] = [pool("a"), pool("b")];
  const several = severalPeers([a.asked, b.asked]);
  a.up = false;
  for (let n = 0; n < 4; n++) expect(await originOf(several)).toBe("b");
  a.up = true;
  for (let n = 0; n < 4; n++) expect(await originOf(several, ["b"])).toBe("a");
  [a.up, b.up] = [false, false];
  expect(await originOf(several)).toMatch(/[ab]/);
  expect(await originOf(severalPeers([]))).toBeUndefined();
});

test("an affinity goes to one URL, as long as that is up and untried", async () => {
  const pools = ["a", "b", "c"].map(pool);
  const several = severalPeers(pools.map(({ asked }) => asked));
  const homeOf = async (affinity: string, tried: string[] = []) =>
    (await several.pick(tried, affinity))?.origin;
  const affinities = Array.from({ length: 30 }, (_, n) => `affinity-${n}`);
  const homes = await Promise.all(affinities.map((one) => homeOf(one)));
  expect(new Set(homes).size).toBe(3);
  expect(await Promise.all(affinities.map((one) => homeOf(one)))).toEqual(homes);
  const [first] = pools;
  if (first) first.up = false;
  for (const [n, affinity] of affinities.entries()) {
    const home = homes[n] ?? "";
    if (home === "a") expect(await homeOf(affinity)).not.toBe("a");
    else expect(await homeOf(affinity)).toBe(home);
    expect(await homeOf(affinity, [home])).not.toBe(home);
  }
});
