import { expect, test } from "vitest";
import { awayRefusal } from "./errors.ts";
import { createTurns } from "./turns.ts";

test("work of one name has its turn when the one before is over, also where that failed", async () => {
  const inTurn = createTurns();
  const first = Promise.withResolvers<string>();
  const begun: string[] = [];
  const run = (name: string, what: string, work: Promise<string>) =>
    inTurn(name, () => {
      begun.push(what);
      return work;
    });
  const outcomes = Promise.allSettled([
    run("a", "first of a", first.promise),
    run("a", "second of a", Promise.resolve("done")),
    run("b", "first of b", Promise.resolve("done")),
  ]);
  await expect.poll(() => begun).toEqual(["first of a", "first of b"]);
  const fault = awayRefusal(new Error("others wrote all the time"));
  first.reject(fault);
  expect(await outcomes).toEqual([
    { status: "rejected", reason: fault },
    { status: "fulfilled", value: "done" },
    { status: "fulfilled", value: "done" },
  ]);
  expect(begun).toEqual(["first of a", "first of b", "second of a"]);
});

test("what waits behind work that finds the database away is refused with it, and what comes later is tried", async () => {
  const inTurn = createTurns();
  const first = Promise.withResolvers<string>();
  const begun: number[] = [];
  const outcomes = Promise.allSettled(
    [0, 1, 2].map((n) =>
      inTurn("a", () => {
        begun.push(n);
        return first.promise;
      }),
    ),
  );
  const reason = awayRefusal(Object.assign(new Error("no server"), { code: "ECONNRESET" }));
  first.reject(reason);
  expect(await outcomes).toEqual([0, 1, 2].map(() => ({ status: "rejected", reason })));
  expect(begun).toEqual([0]);
  expect(await inTurn("a", async () => "back")).toBe("back");
});
