import { expect, test, vi } from "vitest";
import { batched, createBatchWait, createSharedLooks } from "./batching.ts";

/** Runs that end when the test ends them. */
function heldRuns() {
  const runs: { inputs: readonly number[]; end: PromiseWithResolvers<readonly string[]> }[] = [];
  const run = (inputs: readonly number[]) => {
    const end = Promise.withResolvers<readonly string[]>();
    runs.push({ inputs, end });
    return end.promise;
  };
  const inputs = () => runs.map((one) => one.inputs);
  const finish = async (i: number) => {
    const one = runs[i];
    one?.end.resolve(one.inputs.map((input) => `done ${input}`));
    await turn();
  };
  return { run, runs, inputs, finish };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

test("what comes in one moment leaves together; what comes later, with the next run", async () => {
  const { run, inputs, finish } = heldRuns();
  const call = batched(run);
  const first = [call(1), call(2)];
  await turn();
  const later = [call(3), call(4)];
  await turn();
  expect(inputs()).toEqual([[1, 2]]);
  await finish(0);
  expect(await Promise.all(first)).toEqual(["done 1", "done 2"]);
  expect(inputs()).toEqual([
    [1, 2],
    [3, 4],
  ]);
  await finish(1);
  expect(await Promise.all(later)).toEqual(["done 3", "done 4"]);
});

test("a run that hangs leaves the other lanes a way", async () => {
  const { run, inputs, finish } = heldRuns();
  const call = batched(run, { lanes: 2 });
  void call(1);
  await turn();
  const second = call(2);
  await turn();
  const third = call(3);
  await turn();
  expect(inputs()).toEqual([[1], [2]]);
  await finish(1);
  expect(await second).toBe("done 2");
  await finish(2);
  expect(await third).toBe("done 3");
});

test("no run takes more than it may", async () => {
  const { run, inputs, finish } = heldRuns();
  const call = batched(run, { most: 2 });
  const all = [1, 2, 3].map(call);
  await turn();
  await finish(0);
  await finish(1);
  expect(inputs()).toEqual([[1, 2], [3]]);
  expect(await Promise.all(all)).toEqual(["done 1", "done 2", "done 3"]);
});

test("a run that fails fails its own, and no other", async () => {
  const { run, runs, finish } = heldRuns();
  const call = batched(run);
  const lost = [call(1), call(2)];
  const outcomes = Promise.allSettled(lost);
  await turn();
  const next = call(3);
  runs[0]?.end.reject(new Error("away"));
  expect((await outcomes).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  await turn();
  await finish(1);
  expect(await next).toBe("done 3");
});

test("one that lingers leaves with those that come meanwhile, and at once when a run is full", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    const { run, inputs, finish } = heldRuns();
    const call = batched(run, { lanes: 2, most: 3, waitMs: 100 });
    const first = call(1);
    await vi.advanceTimersByTimeAsync(99);
    const second = call(2);
    expect(inputs()).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(inputs()).toEqual([[1, 2]]);
    const full = [call(3), call(4), call(5)];
    await turn();
    expect(inputs()).toEqual([
      [1, 2],
      [3, 4, 5],
    ]);
    await finish(0);
    await finish(1);
    expect(await Promise.all([first, second, ...full])).toHaveLength(5);
    void call(6);
    await vi.advanceTimersByTimeAsync(100);
    expect(inputs()).toHaveLength(3);
  } finally {
    vi.useRealTimers();
  }
});

/** Of `times` inputs in a row, how many waited for others. Each batch has `count` inputs. */
function waitedOf(
  batchWait: ReturnType<typeof createBatchWait>,
  times: number,
  count: number,
): number {
  let waited = 0;
  for (let i = 0; i < times; i++) {
    if (batchWait.isWorthwhile()) waited++;
    batchWait.ended(count);
  }
  return waited;
}

test("who meets others goes on to wait for them", () => {
  expect(waitedOf(createBatchWait(), 100, 3)).toBe(100);
});

test("who is alone soon waits no more, but looks now and then", () => {
  const batchWait = createBatchWait();
  waitedOf(batchWait, 10, 1);
  const waited = waitedOf(batchWait, 80, 1);
  expect(waited).toBe(10);
});

test("who finds others when it looks waits from then on", () => {
  const batchWait = createBatchWait();
  waitedOf(batchWait, 100, 1);
  batchWait.ended(2);
  expect(waitedOf(batchWait, 4, 2)).toBe(4);
});

test("a look is joined before it begins alone; all that ask while it is under way share the next one", async () => {
  const looks = createSharedLooks<number>();
  const begun: PromiseWithResolvers<number>[] = [];
  const look = (name = "a") =>
    looks.add(name, () => {
      const one = Promise.withResolvers<number>();
      begun.push(one);
      return one.promise;
    });
  const first = [look(), look()];
  await turn();
  const later = [look(), look()];
  const other = look("b");
  await turn();
  later.push(look());
  expect(begun).toHaveLength(2);
  expect([looks.has("a"), looks.has("c"), looks.size]).toEqual([true, false, 2]);
  begun[0]?.resolve(1);
  begun[1]?.resolve(2);
  expect(await Promise.all([...first, other])).toEqual([1, 1, 2]);
  await turn();
  expect(begun).toHaveLength(3);
  begun[2]?.resolve(3);
  expect(await Promise.all(later)).toEqual([3, 3, 3]);
  expect(looks.size).toBe(0);
});

test("a look that fails fails those that share it, and the next one is looked anew", async () => {
  const looks = createSharedLooks<string>();
  const end = Promise.withResolvers<string>();
  const failing = [1, 2].map(() => looks.add("a", () => end.promise));
  await turn();
  const next = looks.add("a", async () => "found");
  end.reject(new Error("away"));
  for (const one of await Promise.allSettled(failing)) expect(one.status).toBe("rejected");
  expect(await next).toBe("found");
  expect(looks.has("a")).toBe(false);
});
