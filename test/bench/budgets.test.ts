import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { budgets, exceeded, highest } from "../../bench/budgets.ts";
import { root, startProcess } from "../host/process.ts";

const within = budgets.map((budget): [string, number] => [budget.name, highest(budget)]);

/** The figures in the table that `npm run bench:path` prints. */
function countsIn(table: string): Map<string, number> {
  const [, , ...rows] = table.trim().split("\n");
  return new Map(
    rows.map((row) => {
      const [, name = row, count] = /^\| (.+) \| (\d+) \| \d* \|$/.exec(row) ?? [];
      return [name, Number(count)];
    }),
  );
}

describe("budgets of a text request", () => {
  // The counting fills a core for some 12 seconds. It is done once, for all budgets.
  test("a request, a stream and a delta take no more than before", async () => {
    await using child = startProcess(process.execPath, [join(root, "bench/path.ts")]);
    const { code } = await child.ended;
    expect({ code, stderr: child.stderr() }).toEqual({ code: 0, stderr: "" });
    // After a change that takes less, the budgets are lowered to these counts.
    process.stdout.write(child.stdout());
    const counts = countsIn(child.stdout());
    for (const [name, count] of counts) expect(count, name).not.toBeNaN();
    expect(exceeded(counts)).toEqual([]);
    const ofWays = [...counts.keys()].filter((name) => name.includes(": "));
    const names = budgets.map(({ name }) => name);
    expect(ofWays.filter((name) => !names.includes(name))).toEqual([]);
    for (const budget of budgets) {
      // A count of nearly nothing would be a broken one.
      expect(counts.get(budget.name), budget.name).toBeGreaterThanOrEqual(budget.most / 4);
    }
  });

  test("a count at its budget is right, with the spare of those that vary", () => {
    expect(exceeded(new Map(within))).toEqual([]);
  });

  test.each(within)("one more than the budget is told: %s", (name, most) => {
    const [told = "", ...others] = exceeded(new Map([...within, [name, most + 1]]));
    expect(others).toEqual([]);
    expect(told).toMatch(`${name}: ${most + 1} `);
    expect(told).toMatch(/ more than \d+.*Look at /);
  });

  test("a count that is missing is told", () => {
    expect(exceeded(new Map(within.slice(1)))).toEqual([`${within[0]?.[0]}: was not counted`]);
  });

  test("each budget has its name once, a unit, a reason and a place to look at", () => {
    expect(new Set(budgets.map(({ name }) => name)).size).toBe(budgets.length);
    for (const { unit, reason, look } of budgets) {
      expect([unit, reason, look].every((words) => words.length > 4)).toBe(true);
    }
  });
});
