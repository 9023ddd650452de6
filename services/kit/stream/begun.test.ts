import { expect, test } from "vitest";
import { begun } from "./begun.ts";
import { consume, pushed, type Sink } from "./push-stream.ts";

async function* numbers(count: number, error?: Error) {
  for (let i = 1; i <= count; i++) yield i;
  if (error) throw error;
}

async function read<T>(source: AsyncIterable<T> | undefined): Promise<unknown[]> {
  if (!source) return ["nothing"];
  const seen: unknown[] = [];
  const take = (value: T) => {
    seen.push(value);
    return true;
  };
  await consume(source, take).then(
    () => seen.push("end"),
    (error: Error) => seen.push(error.message),
  );
  return seen;
}

/** A stream whose values a test pushes. */
function pushing() {
  const seen: string[] = [];
  let sink: Sink<number> | undefined;
  const source = pushed<number>((to) => {
    sink = to;
    return {
      resume: () => void seen.push("resume"),
      leave() {
        seen.push("leave");
        return undefined;
      },
    };
  });
  return { source, seen, sink: () => sink as Sink<number> };
}

test("the whole stream comes behind its first value", async () => {
  expect(await read(await begun(numbers(3)))).toEqual([1, 2, 3, "end"]);
  expect(await read(await begun(numbers(1)))).toEqual([1, "end"]);
});

test("a stream without a value is none, and an error before the first rejects", async () => {
  expect(await begun(numbers(0))).toBeUndefined();
  await expect(begun(numbers(0, new Error("broken")))).rejects.toThrow("broken");
});

test("a later error is the stream's", async () => {
  expect(await read(await begun(numbers(2, new Error("broken"))))).toEqual([1, 2, "broken"]);
});

test.each([
  ["an end", (sink: Sink<number>) => sink.end(), "end"],
  ["an error", (sink: Sink<number>) => sink.fail(new Error("broken")), "broken"],
] as const)("%s before there is a reader comes behind the first value", async (_, over, last) => {
  const { source, sink } = pushing();
  const waiting = begun(source);
  sink().push(1);
  over(sink());
  expect(await read(await waiting)).toEqual([1, last]);
});

test("nothing is asked for before the reader has the first value, and the source sees it leave", async () => {
  const { source, seen, sink } = pushing();
  const waiting = begun(source);
  expect(sink().push(1)).toBe(false);
  const stream = await waiting;
  expect(seen).toEqual(["resume"]);
  await consume(stream ?? numbers(0), () => false);
  expect(seen).toEqual(["resume", "leave"]);
});
