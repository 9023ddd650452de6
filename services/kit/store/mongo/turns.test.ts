import { expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { manualClock } from "#kit/time/clock.ts";
import { awayRefusal } from "./errors.ts";
import { operationTimeoutMs } from "./limits.ts";
import { createTurns } from "./turns.ts";

test("work of one name has its turn when the one before is over, also where that failed", async () => {
  const inTurn = createTurns(manualClock());
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
  const inTurn = createTurns(manualClock());
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

test("one whose caller has left gives up its place, and never begins", async () => {
  const inTurn = createTurns(manualClock());
  const first = Promise.withResolvers<string>();
  const begun: number[] = [];
  const run = (n: number, signal?: AbortSignal) =>
    inTurn(
      "a",
      () => {
        begun.push(n);
        return n === 0 ? first.promise : Promise.resolve(`done ${n}`);
      },
      signal,
    );
  const leave = new AbortController();
  const outcomes = [run(0), run(1, leave.signal), run(2)];
  const reason = new Error("the caller has left");
  leave.abort(reason);
  await expect(outcomes[1]).rejects.toBe(reason);
  expect(begun).toEqual([0]);
  await expect(run(3, leave.signal)).rejects.toBe(reason);
  first.resolve("done 0");
  expect([await outcomes[0], await outcomes[2]]).toEqual(["done 0", "done 2"]);
  expect(begun).toEqual([0, 2]);
});

test("one whose turn does not come in the time of an operation is refused; those behind it go on waiting", async () => {
  const clock = manualClock();
  const inTurn = createTurns(clock);
  const first = Promise.withResolvers<string>();
  const begun: number[] = [];
  const run = (n: number) =>
    inTurn("a", () => {
      begun.push(n);
      return n === 0 ? first.promise : Promise.resolve(`done ${n}`);
    });
  const zero = run(0);
  const one = Promise.allSettled([run(1)]);
  await clock.advance(operationTimeoutMs - 1);
  const two = run(2);
  await clock.advance(1);
  expect(await one).toMatchObject([{ reason: { reason: ErrorReason.SERVICE_UNAVAILABLE } }]);
  first.resolve("done 0");
  expect([await zero, await two]).toEqual(["done 0", "done 2"]);
  expect(begun).toEqual([0, 2]);
});

test("work is told whether other work was before it", async () => {
  const inTurn = createTurns(manualClock());
  const waited = async (hasWaited: boolean) => hasWaited;
  const both = [inTurn("a", waited), inTurn("a", waited), inTurn("b", waited)];
  expect(await Promise.all(both)).toEqual([false, true, false]);
  expect(await inTurn("a", waited)).toBe(false);
});
