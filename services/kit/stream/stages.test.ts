import { AsyncLocalStorage } from "node:async_hooks";
import { describe, expect, test } from "vitest";
import { pushed } from "./push-stream.ts";
import { type Stage, staged } from "./stages.ts";

/** Gives numbers from 1, then ends or throws. Notes when its reader leaves. */
async function* numbers(count: number, left: string[] = [], error?: Error) {
  try {
    for (let i = 1; i <= count; i++) yield i;
    if (error) throw error;
  } finally {
    left.push("source");
  }
}

async function read<T>(source: AsyncIterable<T>): Promise<unknown[]> {
  const seen: unknown[] = [];
  try {
    for await (const one of source) seen.push(one);
    seen.push("end");
  } catch (error) {
    seen.push(error instanceof Error ? error.message : error);
  }
  return seen;
}

const mapped = <In, Out>(pass: (value: In) => Out): Stage<In, Out> => ({ pass });

const prefixed = (prefix: string): Stage<unknown> => ({
  fail: (error) => new Error(`${prefix} ${error instanceof Error ? error.message : error}`),
});

describe("stages", () => {
  test("stand in the order in which they were put", async () => {
    const doubled = staged(
      numbers(2),
      mapped((n: number) => n * 2),
    );
    const text = staged(
      doubled,
      mapped((n: number) => `<${n}>`),
    );
    expect(await read(text)).toEqual(["<2>", "<4>", "end"]);
  });

  test("an error of the source passes through all", async () => {
    const source = numbers(1, [], new Error("broken"));
    const outer = staged(staged(source, prefixed("inner")), prefixed("outer"));
    expect(await read(outer)).toEqual([1, "outer inner broken"]);
  });

  test("an error of a stage is heard by those behind it alone", async () => {
    const broken = () => {
      throw new Error("broken");
    };
    const inner = staged(staged(numbers(1), prefixed("inner")), { pass: broken, fail: broken });
    expect(await read(staged(inner, prefixed("outer")))).toEqual(["outer broken"]);
  });

  test("hear of a reader that leaves, the nearest first, then the source", async () => {
    const left: string[] = [];
    const inner = staged(numbers(3, left), { leave: () => left.push("inner") });
    for await (const _ of staged(inner, { leave: () => left.push("outer") })) break;
    expect(left).toEqual(["outer", "inner", "source"]);
  });

  test("one that is stopped fails what is waited for, at once and from then on, and leaves what is before it", async () => {
    const left: string[] = [];
    const never = new Promise<never>(() => {});
    const source: AsyncIterable<number> = {
      [Symbol.asyncIterator]: () => ({
        next: () => never,
        async return() {
          left.push("source");
          return { done: true, value: undefined };
        },
      }),
    };
    let stop: (reason: unknown) => void = () => {};
    const inner = staged(source, { leave: () => left.push("inner"), ...prefixed("inner") });
    const stopped = staged(inner, {
      until(end) {
        stop = end;
      },
    });
    const outer = staged(stopped, { leave: () => left.push("outer"), ...prefixed("outer") });
    const it = outer[Symbol.asyncIterator]();
    const waiting = it.next();
    stop(new Error("late"));
    await expect(waiting).rejects.toThrow("outer late");
    await expect(it.next()).rejects.toThrow("outer late");
    expect(left).toEqual(["inner", "source"]);
  });

  test("one that may be stopped passes steps and errors like any other", async () => {
    const until = () => {};
    expect(await read(staged(numbers(2), { until }))).toEqual([1, 2, "end"]);
    const source = numbers(1, [], new Error("broken"));
    const outer = staged(staged(source, { until }), prefixed("outer"));
    expect(await read(outer)).toEqual([1, "outer broken"]);
    const picky = {
      pass() {
        throw new Error("no");
      },
    };
    expect(await read(staged(staged(numbers(1), { until }), picky))).toEqual(["no"]);
  });

  test("one that is entered has all before it within it", async () => {
    const where = new AsyncLocalStorage<string>();
    const seen: (string | undefined)[] = [];
    const here: Stage<number> = {
      pass(value) {
        seen.push(where.getStore());
        return value;
      },
    };
    const enter = <R>(work: () => R): R => where.run("inside", work);
    const source = (async function* () {
      seen.push(where.getStore());
      yield 1;
    })();
    const it = staged(staged(staged(source, here), { enter }), here)[Symbol.asyncIterator]();
    await it.next();
    expect(seen).toEqual(["inside", "inside", undefined]);
  });

  test("one that is stopped before anything is wanted says so then", () => {
    const left: string[] = [];
    const source = pushed<number>(() => ({
      resume() {},
      leave() {
        left.push("source");
        return undefined;
      },
    }));
    const failures: unknown[] = [];
    const late = staged(source, { until: (stop) => stop(new Error("late")) });
    const flow = late.pushTo({ push: () => true, end() {}, fail: (error) => failures.push(error) });
    expect([failures, left]).toEqual([[], ["source"]]);
    flow.resume();
    expect(failures).toEqual([new Error("late")]);
  });
});
