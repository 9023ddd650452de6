import { expect, test } from "vitest";
import { createShare } from "./progress.ts";

type Event = [type: string, data: Record<string, string | number | null | string[]>];
/** The share that is reported after each event. */
function told(nodes: number, events: Event[]) {
  const share = createShare(nodes);
  return events.map(([type, data]) => share.after(type, data));
}
const executing = (node: string): Event => ["executing", { node }];
const step = (node: string, value: number, max: number): Event => [
  "progress",
  { node, value, max },
];

test("nothing is told until a node tells of steps, then its steps count as much as other nodes", () => {
  const events = [
    executing("4"),
    executing("6"),
    executing("3"),
    step("3", 1, 8),
    step("3", 8, 8),
    executing("8"),
    executing("9"),
  ];
  // Three nodes around the sampler of eight steps: eleven in all. Loaded nodes count as done.
  expect(told(5, events)).toEqual([undefined, undefined, undefined, 25, 83, 83, 91]);
});

test("what the cache has is done", () => {
  const cached: Event = ["execution_cached", { nodes: ["4", "6"] }];
  expect(told(4, [cached, executing("3"), step("3", 5, 10)]).at(-1)).toBe(53);
});

test("it stays between 0 and 99, for anything that a node tells", () => {
  const events = [step("3", 5, 0), step("3", 99, 10), step("3", Number.NaN, 10), step("3", -5, 10)];
  const percents = told(1, events).filter((percent) => percent !== undefined);
  expect(percents.length).toBeGreaterThan(0);
  for (const percent of percents) expect(percent >= 0 && percent <= 99).toBe(true);
  expect(
    told(3, [
      ["status", {}],
      ["progress", { value: "one", max: 2 }],
    ]),
  ).toEqual([undefined, undefined]);
});
