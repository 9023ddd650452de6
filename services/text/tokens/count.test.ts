import { execFile } from "node:child_process";
import { once } from "node:events";
import { globSync, readFileSync } from "node:fs";
import { performance } from "node:perf_hooks";
import { setImmediate } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Worker } from "node:worker_threads";
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { afterEach, describe, expect, test } from "vitest";
import { createWorkshop, startThread, type WorkshopOptions } from "#kit/threads/workshop.ts";
import { maxCounts } from "../base/limits.ts";
import { createTokenCounter, slicesOf } from "./count.ts";

const mib = 1024 * 1024;
const prompt = "The quick brown fox jumps over the lazy dog. ".repeat(24_000).slice(0, mib);
const plain = { allowedSpecial: new Set<string>(), disallowedSpecial: new Set<string>() };

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of stack.splice(0)) await one[Symbol.asyncDispose]();
});

/** A counter that leaves a thread time to start on a busy machine. One test is about a time that is too long. */
function counterWith(options: WorkshopOptions & { answerTimeoutMs?: number } = {}) {
  const workshop = createWorkshop(options);
  const counter = createTokenCounter(workshop, { answerTimeoutMs: 50_000, ...options });
  const ended = async () => {
    await counter[Symbol.asyncDispose]();
    await workshop[Symbol.asyncDispose]();
  };
  stack.push({ [Symbol.asyncDispose]: ended });
  return Object.assign(counter, { ended });
}

/** A function that starts threads. The first ones have the given code, and all later ones are real. */
function starting(...firstOnes: string[]) {
  const started: Worker[] = [];
  const start = () => {
    const code = firstOnes[started.length];
    const worker = code === undefined ? startThread("short") : new Worker(code, { eval: true });
    started.push(worker);
    return worker;
  };
  return { start, started };
}
const silent = `require("node:worker_threads").parentPort.on("message", () => {});`;
const dying = `require("node:worker_threads").parentPort.on("message", (m) => {
  throw Object.assign(new Error(m.given.pieces.join()), { code: "E_TEST" });
});`;
const seven = `const { parentPort } = require("node:worker_threads");
parentPort.on("message", () => parentPort.postMessage({ tokens: 7, most: 7 }));`;

describe("a count in the thread", () => {
  test("is what the tokenizer says of each slice", async () => {
    const texts = [
      prompt.slice(0, 100_000),
      "漢字仮名交じり文、そして空白なし。".repeat(3_000),
      "🌊🦊👩‍🚀🏳️‍🌈 é̀à̂ṏ ".repeat(2_000),
      "\ud83c half \udf0a".repeat(500),
      "<|im_start|>system<|endoftext|>".repeat(500),
      ...Array.from({ length: 3_000 }, (_, n) => `${n}`),
      "",
    ];
    const counter = counterWith();
    const slices = texts.flatMap((text) => [...slicesOf(text)]);
    const tokens = slices.reduce((sum, slice) => sum + countTokens(slice, plain), 0);
    expect(await counter.count(texts)).toBe(tokens);
    expect(await counter.count(texts.slice(2, 4))).toBe(
      texts.slice(2, 4).reduce((sum, text) => sum + sliced(text), 0),
    );
    expect(await counter.count([])).toBe(0);
  });

  test("of a megabyte leaves the event loop free, loading included", async () => {
    const counter = counterWith();
    const before = performance.eventLoopUtilization();
    expect(await counter.count([prompt])).toBeGreaterThan(mib / 6);
    // With the work on the event loop itself it is 1.
    expect(performance.eventLoopUtilization(before).utilization).toBeLessThan(0.5);
  });

  test("takes turns with others: a short one is done before a long one that was first", async () => {
    const counter = counterWith();
    const done: string[] = [];
    const long = counter.count([prompt]).then(() => done.push("long"));
    const short = counter.count(["Hi"]).then(() => done.push("short"));
    await Promise.all([long, short]);
    expect(done).toEqual(["short", "long"]);
  });

  test("takes turns with those of other accounts, however many one of them has", async () => {
    const counter = counterWith();
    await counter.count(["Hi"]);
    let done = 0;
    const many = Array.from({ length: 20 }, () =>
      counter.count([prompt], Number.POSITIVE_INFINITY, "many").then(() => done++),
    );
    // Alone it would take as long as one of the twenty.
    await counter.count([prompt], Number.POSITIVE_INFINITY, "one");
    expect(done).toBe(0);
    await Promise.all(many);
  });

  test("nothing else loads the tokenizer, but the upstream that makes up answers", () => {
    const folder = fileURLToPath(new URL("../../", import.meta.url));
    const loading = globSync("**/*.ts", { cwd: folder })
      .filter((file) => !file.endsWith(".test.ts"))
      .filter((file) => /"gpt-tokenizer|tokens\/in-thread/.test(text(folder, file)));
    expect(loading.sort()).toEqual(["builtin/text/tokens.ts", "text/tokens/in-thread.ts"]);
  });

  test("holds no process that has nothing else to do", async () => {
    const file = new URL("./count.ts", import.meta.url);
    const threads = new URL("../../kit/threads/workshop.ts", import.meta.url);
    const script = `import { createTokenCounter } from "${file}";
      import { createWorkshop } from "${threads}";
      console.log(await createTokenCounter(createWorkshop()).count(["one two three"]));`;
    const args = ["--input-type=module", "-e", script];
    // A process that is held goes on for a minute.
    const run = promisify(execFile)(process.execPath, args, { timeout: 50_000 });
    const { stdout } = await run;
    expect(stdout).toBe("3\n");
  });
});

function sliced(whole: string): number {
  return [...slicesOf(whole)].reduce((sum, slice) => sum + countTokens(slice, plain), 0);
}

function text(folder: string, file: string): string {
  return readFileSync(`${folder}${file}`, "utf8");
}

describe("a thread that fails", () => {
  test("in a count is replaced, and the count is right", async () => {
    const { start, started } = starting(dying);
    const counter = counterWith({ start });
    const counts = [counter.count(["one two three"]), counter.count(["four five"])];
    expect(await Promise.all(counts)).toEqual([3, 2]);
    expect(started).toHaveLength(2);
  });

  test("twice ends the count, says nothing of the text, and the next one is right", async () => {
    const { start } = starting(dying, dying);
    const counter = counterWith({ start });
    const error = await counter.count(["a secret"]).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      name: "CountError",
      message: "the counting thread ended (E_TEST)",
    });
    expect(await counter.count(["one two three"])).toBe(3);
  });

  test("by silence is replaced after its time", async () => {
    const { start, started } = starting(silent, seven);
    const counter = counterWith({ start, answerTimeoutMs: 3_000 });
    expect(await counter.count(["Hi"])).toBe(7);
    expect(started).toHaveLength(2);
  });

  test("between two counts is replaced", async () => {
    const { start, started } = starting();
    const counter = counterWith({ start });
    expect(await counter.count(["one two three"])).toBe(3);
    await started[0]?.terminate();
    expect(await counter.count(["one two three"])).toBe(3);
    expect(started).toHaveLength(2);
  });

  test("that cannot be started ends what waits", async () => {
    const start = () => {
      throw Object.assign(new Error("of the system"), { code: "ERR_WORKER_INIT_FAILED" });
    };
    const counter = counterWith({ start });
    const counts = await Promise.allSettled([counter.count(["one"]), counter.count(["two"])]);
    const reason = { message: "no counting thread could be started (ERR_WORKER_INIT_FAILED)" };
    expect(counts).toMatchObject([{ reason }, { reason }]);
  });
});

describe("the thread's life", () => {
  test("ends where there is nothing to do, and begins anew", async () => {
    const { start, started } = starting(seven, seven);
    const counter = counterWith({ start, idleMs: 1 });
    await counter.count(["Hi"]);
    if (started[0]) await once(started[0], "exit");
    expect(await counter.count(["Hi"])).toBe(7);
    expect(started).toHaveLength(2);
  });

  test("ends with its owner, also while it counts: who waits is told", async () => {
    const { start, started } = starting(silent);
    const counter = counterWith({ start });
    const counts = Promise.allSettled([counter.count(["one"]), counter.count(["two"])]);
    await setImmediate();
    const exited = started[0] && once(started[0], "exit");
    await counter.ended();
    await exited;
    const reason = { name: "CountError" };
    expect(await counts).toMatchObject([{ reason }, { reason }]);
    await expect(counter.count(["three"])).rejects.toMatchObject(reason);
    expect(started).toHaveLength(1);
  });

  test("so many counts at once, and no more", async () => {
    const { start } = starting(silent);
    const counter = counterWith({ start });
    const counts = Promise.allSettled(
      Array.from({ length: maxCounts }, () => counter.count(["x"])),
    );
    await expect(counter.count(["x"])).rejects.toThrow("too many");
    await counter.ended();
    expect(await counts).toHaveLength(maxCounts);
    await expect(counter.count(["x"])).rejects.toThrow("closed");
  });
});
