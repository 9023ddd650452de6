import { describe, expect, test } from "vitest";
import { IdleMemory } from "./idle-memory.ts";

const mib = 1_024 * 1_024;

/** Looks at a process, five seconds after the look before, that used `cores` since then and has `residentMib`. */
function looking() {
  const memory = new IdleMemory();
  const at = { atMs: 0, cpuMs: 0 };
  const look = (cores: number, residentMib: number): boolean => {
    at.atMs += 5_000;
    at.cpuMs += 5_000 * cores;
    return memory.isDue({ ...at, residentBytes: residentMib * mib });
  };
  look(1, 100);
  return { look, collected: (residentMib: number) => memory.collected(residentMib * mib) };
}

describe("an idle process", () => {
  test("collects what its start left", () => {
    expect(looking().look(0.02, 100)).toBe(true);
  });

  test("collects once more 20 s later, when threads have ended, and then rests", () => {
    const { look, collected } = looking();
    const looks = Array.from({ length: 12 }, () => {
      const isDue = look(0.02, 100);
      if (isDue) collected(100);
      return isDue ? "collects" : "rests";
    });
    const rests = Array(3).fill("rests");
    expect(looks).toEqual(["collects", ...rests, "collects", ...rests, ...rests, "rests"]);
  });

  test("collects for each load, and not while the load lasts", () => {
    const { look, collected } = looking();
    collected(100);
    expect(look(0.02, 120)).toBe(false);
    expect(look(0.5, 600)).toBe(false);
    expect(look(0.02, 590)).toBe(true);
    collected(130);
    expect(look(0.02, 130)).toBe(false);
    expect(look(0.02, 160)).toBe(false);
    expect(look(0.02, 163)).toBe(true);
  });

  test("counts from the least that it had, also where the system took pages later", () => {
    const { look, collected } = looking();
    collected(200);
    expect(look(0.02, 150)).toBe(false);
    expect(look(0.02, 190)).toBe(true);
  });
});
