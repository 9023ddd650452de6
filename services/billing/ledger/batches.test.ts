import { expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { maxBatchOperations, maxWaitingOperations } from "../base/limits.ts";
import { createBatches, type TimedOperation } from "./batches.ts";
import type { Operation, Outcome } from "./operations.ts";

const wallet = { accountId: "acct_a", unit: "credits" } as const;
const other = { accountId: "acct_b", unit: "credits" } as const;

function release(holdId: string): Operation {
  return { kind: "release", holdId };
}

/** Batches whose transitions begin and end when the test decides. An outcome names its operation. */
function driven() {
  const runs: { take: () => TimedOperation[]; end: (error?: Error) => void }[] = [];
  const batches = createBatches(
    (_, take) =>
      new Promise((resolve, reject) => {
        let taken: TimedOperation[] = [];
        runs.push({
          take: () => {
            taken = take();
            return taken;
          },
          end: (error) => (error ? reject(error) : resolve(taken.map(outcomeOf))),
        });
      }),
  );
  return { batches, runs };
}

function outcomeOf({ operation }: TimedOperation): Outcome {
  const holdId = "holdId" in operation ? operation.holdId : "";
  return { kind: "refused", reason: ErrorReason.HOLD_NOT_FOUND, metadata: { holdId } };
}

const saw = (outcomes: Outcome[]) =>
  outcomes.map((outcome) => outcome.kind === "refused" && outcome.metadata.holdId);

test("what waits when a transition begins is in it, and each caller gets its own", async () => {
  const { batches, runs } = driven();
  const first = batches.add(wallet, [release("a"), release("b")], 1);
  const second = batches.add(wallet, [release("c")], 2);
  expect(runs).toHaveLength(1);
  expect(runs[0]?.take().map(({ now }) => now)).toEqual([1, 1, 2]);
  const late = batches.add(wallet, [release("d")], 3);
  runs[0]?.end();
  expect(saw(await first)).toEqual(["a", "b"]);
  expect(saw(await second)).toEqual(["c"]);
  expect(runs[1]?.take()).toHaveLength(1);
  runs[1]?.end();
  expect(saw(await late)).toEqual(["d"]);
});

test("a caller that comes as the last batch ends is served", async () => {
  const { batches, runs } = driven();
  const chained = batches.add(wallet, [release("a")], 1).then(() => {
    return batches.add(wallet, [release("b")], 2);
  });
  runs[0]?.take();
  runs[0]?.end();
  await expect.poll(() => runs.length).toBe(2);
  runs[1]?.take();
  runs[1]?.end();
  expect(saw(await chained)).toEqual(["b"]);
});

test("wallets do not wait for each other", () => {
  const { batches, runs } = driven();
  void batches.add(wallet, [release("a")], 1);
  void batches.add(other, [release("a")], 1);
  expect(runs).toHaveLength(2);
});

test("a failed transition fails those in it, begun or not, and the next goes on", async () => {
  const { batches, runs } = driven();
  const first = batches.add(wallet, [release("a")], 1);
  runs[0]?.end(new Error("could not begin"));
  await expect(first).rejects.toThrow("could not begin");
  const second = batches.add(wallet, [release("b")], 1);
  runs[1]?.take();
  const third = batches.add(wallet, [release("c")], 1);
  runs[1]?.end(new Error("could not end"));
  await expect(second).rejects.toThrow("could not end");
  runs[2]?.take();
  runs[2]?.end();
  expect(saw(await third)).toEqual(["c"]);
});

test("a batch is bounded, and so is what waits", async () => {
  const { batches, runs } = driven();
  const many = Array.from({ length: maxBatchOperations }, (_, i) => release(`${i}`));
  for (let waiting = 0; waiting < maxWaitingOperations; waiting += many.length) {
    void batches.add(wallet, many, 1);
  }
  await expect(batches.add(wallet, [release("z")], 1)).rejects.toMatchObject({
    reason: ErrorReason.SERVICE_UNAVAILABLE,
  });
  expect(runs[0]?.take()).toHaveLength(maxBatchOperations);
});
