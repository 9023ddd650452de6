import { expect, test } from "vitest";
import { manualClock } from "#kit/time/clock.ts";
import { createPasswords } from "./passwords.ts";

const caller = { client: "here", signal: new AbortController().signal };
const cheap = { cost: 2 ** 10, blockSize: 8, parallelization: 1 };

test("a hash has the costs that OWASP recommends, and they are kept with it", async () => {
  const passwords = createPasswords({ clock: manualClock() });
  const hash = await passwords.hash("correct horse battery", caller);
  expect(hash).toMatchObject({ cost: 131_072, blockSize: 8, parallelization: 1 });
  // Costs that have changed since count for new hashes alone.
  const later = createPasswords({ clock: manualClock(), costs: cheap });
  expect(await later.matches(hash, "correct horse battery", caller)).toBe(true);
  const cheaper = await later.hash("correct horse battery", caller);
  expect(cheaper).toMatchObject(cheap);
  expect(await later.matches(cheaper, "wrong horse battery", caller)).toBe(false);
});

test("no password is right where there is none, and letters may be composed in either way", async () => {
  const passwords = createPasswords({ clock: manualClock(), costs: cheap });
  expect(await passwords.matches(undefined, "", caller)).toBe(false);
  const hash = await passwords.hash("caf\u00e9 au lait", caller);
  expect(await passwords.matches(hash, "cafe\u0301 au lait", caller)).toBe(true);
});

test("an address with too many that wait is refused, and others are not", async () => {
  const passwords = createPasswords({ clock: manualClock(), costs: cheap });
  const flood = Array.from({ length: 8 }, () => passwords.matches(undefined, "x", caller));
  const other = passwords.matches(undefined, "x", { ...caller, client: "there" });
  const told = await Promise.allSettled(flood);
  expect(told.filter(({ status }) => status === "fulfilled")).toHaveLength(5);
  expect(await other).toBe(false);
});
