import { expect, test } from "vitest";
import { affinityOf, affinityRank } from "./affinity.ts";

const origins = ["http://10.0.0.1:7070", "http://10.0.0.2:7070", "http://10.0.0.3:7070"];
const affinities = Array.from({ length: 3_000 }, (_, n) =>
  affinityOf({ accountId: "a", keyId: "key_1" }, `${n}`),
);
const wanted = (affinity: string, among: readonly string[]) =>
  among.toSorted((a, b) => affinityRank(affinity, b) - affinityRank(affinity, a))[0];

test("each origin is wanted for its share", () => {
  const counts = origins.map(
    (origin) => affinities.filter((one) => wanted(one, origins) === origin).length,
  );
  for (const count of counts) expect(Math.abs(count - 1_000)).toBeLessThan(100);
});

test("without one origin only its own share moves, to all of the others", () => {
  const [gone, ...left] = origins;
  const moved = new Set<string | undefined>();
  for (const one of affinities) {
    const before = wanted(one, origins);
    const after = wanted(one, left);
    if (before === gone) moved.add(after);
    else expect(after).toBe(before);
  }
  expect(moved).toEqual(new Set(left));
});

test("it tells neither the key nor whose it is, and takes any text", () => {
  const affinity = affinityOf({ accountId: "acct", keyId: "key_1" }, "Bestellung №5\n");
  expect(affinity).toMatch(/^[\w-]{43}$/);
  expect(affinityOf({ accountId: "acct", keyId: "key_1" }, "Bestellung №5\n")).toBe(affinity);
  expect(affinityOf({ accountId: "acct", keyId: "key_2" }, "Bestellung №5\n")).not.toBe(affinity);
});
