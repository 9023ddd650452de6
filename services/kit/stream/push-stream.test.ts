import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { consume, later, pushed, pushTo, type Sink, single } from "./push-stream.ts";

describe("a stream that is pushed", () => {
  /** A source that gives values when the test calls `give`, as a socket does. It notes its reader's calls. */
  function source() {
    const calls: string[] = [];
    let sink: Sink<number> | undefined;
    const stream = pushed<number>((to) => {
      sink = to;
      return {
        resume: () => void calls.push("resume"),
        leave: () => {
          calls.push("leave");
          return undefined;
        },
      };
    });
    return { calls, stream, sink: () => sink as Sink<number> };
  }

  test("is consumed as its reader has room", async () => {
    const { calls, stream, sink } = source();
    const room = Promise.withResolvers<void>();
    const seen: number[] = [];
    const over = consume(stream, (value) => {
      seen.push(value);
      return value < 2 ? true : room.promise;
    });
    expect([sink().push(1), sink().push(2), ...calls]).toEqual([true, false, "resume"]);
    room.resolve();
    await turn();
    expect(calls).toEqual(["resume", "resume"]);
    sink().end();
    await over;
    expect(seen).toEqual([1, 2]);
  });

  test("is left by a reader that has enough, or that breaks", async () => {
    const enough = source();
    const left = consume(enough.stream, () => false);
    enough.sink().push(1);
    await left;
    const broken = source();
    const failed = consume(broken.stream, () => {
      throw new Error("broken");
    });
    broken.sink().push(1);
    await expect(failed).rejects.toThrow("broken");
    expect([enough.calls, broken.calls]).toEqual([
      ["resume", "leave"],
      ["resume", "leave"],
    ]);
  });

  test("of one value is ended once, as its reader has room", () => {
    const calls: unknown[] = [];
    const sinkOf = (takes: (value: string) => boolean): Sink<string> => ({
      push(value) {
        calls.push(value);
        return takes(value);
      },
      end: () => void calls.push("end"),
      fail: (error) => void calls.push(error),
    });
    const full = pushTo(
      single("full"),
      sinkOf(() => false),
    );
    for (let time = 0; time < 3; time++) full.resume();
    const again = pushTo(
      single("again"),
      sinkOf(() => {
        again.resume();
        return true;
      }),
    );
    again.resume();
    const left = pushTo(
      single("left"),
      sinkOf(() => false),
    );
    left.resume();
    left.leave();
    left.resume();
    expect(calls).toEqual(["full", "end", "again", "end", "left"]);
  });

  test("is pulled a value at a time", async () => {
    const { calls, stream, sink } = source();
    const it = stream[Symbol.asyncIterator]();
    const [first, second] = [it.next(), it.next()];
    expect(sink().push(1)).toBe(false);
    await turn();
    expect(sink().push(2)).toBe(false);
    expect([(await first).value, (await second).value]).toEqual([1, 2]);
    expect(calls).toEqual(["resume", "resume"]);
    await it.return?.();
    expect(calls).toEqual(["resume", "resume", "leave"]);
    expect(await it.next()).toEqual({ done: true, value: undefined });
  });

  test("begins when it is wanted, and not at all for a reader that left before", async () => {
    const begun: string[] = [];
    const come = Promise.withResolvers<AsyncIterable<number>>();
    const begin = () => {
      begun.push("begun");
      return come.promise;
    };
    const { calls, stream } = source();
    const it = later(begin)[Symbol.asyncIterator]();
    expect(begun).toEqual([]);
    void it.next();
    await it.return?.();
    come.resolve(stream);
    await turn();
    expect([begun, calls]).toEqual([["begun"], ["leave"]]);
  });

  test("whose reader has a fault ends alone", async () => {
    const left: string[] = [];
    const failed = Promise.withResolvers<unknown>();
    async function* numbers() {
      try {
        yield 1;
      } finally {
        left.push("source");
      }
    }
    const flow = pushTo(numbers(), {
      push() {
        throw new Error("a fault");
      },
      end() {},
      fail: failed.resolve,
    });
    flow.resume();
    expect(await failed.promise).toEqual(new Error("a fault"));
    await turn();
    expect(left).toEqual(["source"]);
  });
});
