import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createBuiltinRenderer } from "./index.ts";
import { CANCEL_GRACE_MS } from "./limits.ts";
import { Pool } from "./pool.ts";
import { readMp4 } from "./testing/probe.ts";

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "builtin-"));
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

const SMALL = { prompt: "a lake", width: 64, height: 64 };
/** Work for many seconds in small steps: whatever ends it soon was told to. */
const LONG = {
  prompt: "a lake",
  width: 640,
  height: 360,
  durationSeconds: 30,
  fps: 60,
  audio: "stereo",
} as const;

describe("createBuiltinRenderer", () => {
  test("does every kind of task in its threads", async () => {
    await using renderer = createBuiltinRenderer({ threads: 2 });
    const outFile = join(folder, "all.mp4");
    const percents: number[] = [];
    const size = { width: 96, height: 64 };
    const [image, video, speech, music] = await Promise.all([
      renderer.image(SMALL),
      renderer.video({
        prompt: "a lake",
        ...size,
        durationSeconds: 1,
        audio: "mono",
        outFile,
        onProgress: (percent) => percents.push(percent),
      }),
      renderer.speech({ text: "Hello", voice: "alloy", speed: 1 }),
      renderer.music({ mode: "instrumental", title: "x" }),
    ]);
    expect(image.bytes.subarray(1, 4)).toEqual(new TextEncoder().encode("PNG"));
    expect(readMp4(await readFile(outFile)).tracks).toHaveLength(2);
    expect(video.sizeBytes).toBe((await readFile(outFile)).length);
    expect(percents.at(-1)).toBe(100);
    expect(speech.durationSeconds).toBeGreaterThan(0.3);
    expect(music.durationSeconds).toBeGreaterThan(30);
  });

  test("gives the same bytes from any thread", async () => {
    await using renderer = createBuiltinRenderer({ threads: 2 });
    const [one, other] = await Promise.all([renderer.image(SMALL), renderer.image(SMALL)]);
    expect(one.bytes).toEqual(other.bytes);
  });

  test("takes the longest texts that the public API takes, whatever their characters", async () => {
    await using renderer = createBuiltinRenderer({ threads: 1 });
    const longest = (characters: number) => "\u{1f600}".repeat(characters);
    // Limits come first, so this tells that they hold without the work.
    const signal = AbortSignal.abort(new Error("within the limits"));
    const song = { mode: "lyrics", title: longest(1_000), lyrics: longest(32_000) } as const;
    const asked = [
      renderer.image({ ...SMALL, prompt: longest(32_000) }, { signal }),
      renderer.video({ ...LONG, prompt: longest(32_000), outFile: folder }, { signal }),
      renderer.music({ ...song, description: longest(32_000) }, { signal }),
      renderer.speech({ text: longest(4_096), voice: "alloy", speed: 1 }, { signal }),
    ];
    for (const one of asked) await expect(one).rejects.toThrow("within the limits");
  });

  test("speech does not wait behind a film", async () => {
    await using renderer = createBuiltinRenderer({ threads: 1 });
    const gone = new AbortController();
    const outFile = join(folder, "behind.mp4");
    const film = renderer.video({ ...LONG, outFile }, { signal: gone.signal });
    const ended = expect(film).rejects.toThrow("heard it");
    const speech = await renderer.speech({ text: "Hello", voice: "alloy", speed: 1 });
    expect(speech.durationSeconds).toBeGreaterThan(0.3);
    gone.abort(new Error("heard it"));
    await ended;
  });

  test("leaves the event loop free while four videos render", async () => {
    await using renderer = createBuiltinRenderer({ threads: 4 });
    const names = ["one", "two", "three", "four"];
    await Promise.all(names.map(() => renderer.image(SMALL)));
    const delay = monitorEventLoopDelay({ resolution: 10 });
    delay.enable();
    const video = (name: string) =>
      renderer.video({
        prompt: name,
        width: 320,
        height: 180,
        durationSeconds: 2,
        audio: "none",
        outFile: join(folder, `${name}.mp4`),
      });
    await Promise.all(names.map(video));
    delay.disable();
    // In this thread a video of this size takes half a second or more at a stretch. The bound leaves room
    // for other processes on the machine.
    expect(delay.percentile(95) / 1e6).toBeLessThan(100);
  });

  test("an abort stops the running task and frees its thread", async () => {
    await using renderer = createBuiltinRenderer({ threads: 1 });
    const outFile = join(folder, "aborted.mp4");
    const gone = new AbortController();
    const started = Promise.withResolvers<void>();
    const video = renderer.video(
      { ...LONG, outFile, onProgress: () => started.resolve() },
      { signal: gone.signal },
    );
    await started.promise;
    const reason = new Error("the caller left");
    const from = performance.now();
    gone.abort(reason);
    await expect(video).rejects.toBe(reason);
    // Sooner than a thread is ended that does not stop by itself.
    expect(performance.now() - from).toBeLessThan(CANCEL_GRACE_MS);
    expect((await renderer.image(SMALL)).width).toBe(64);
    expect((await readdir(folder)).filter((name) => name.startsWith("aborted"))).toEqual([]);
  });

  test("a task that waits can be aborted without disturbing the others", async () => {
    await using renderer = createBuiltinRenderer({ threads: 1 });
    const gone = new AbortController();
    const first = renderer.image(SMALL);
    const second = renderer.image(SMALL, { signal: gone.signal });
    const third = renderer.image(SMALL);
    gone.abort(new Error("the caller left"));
    await expect(second).rejects.toThrow("the caller left");
    expect((await first).bytes).toEqual((await third).bytes);
    const aborted = renderer.image(SMALL, { signal: AbortSignal.abort(new Error("before")) });
    await expect(aborted).rejects.toThrow("before");
  });

  test("disposal ends what runs and refuses what comes", async () => {
    const renderer = createBuiltinRenderer({ threads: 1 });
    const running = renderer.video({ ...LONG, outFile: join(folder, "closed.mp4") });
    const waiting = renderer.image(SMALL);
    const outcomes = Promise.allSettled([running, waiting]);
    await renderer[Symbol.asyncDispose]();
    for (const outcome of await outcomes) {
      expect(outcome).toMatchObject({ status: "rejected", reason: { failure: "closed" } });
    }
    await expect(renderer.image(SMALL)).rejects.toMatchObject({ failure: "closed" });
  });

  test("an error in a thread is the task's error, and the next task is done", async () => {
    await using renderer = createBuiltinRenderer({ threads: 1 });
    const broken = renderer.image({ ...SMALL, references: [new Uint8Array([1])] });
    await expect(broken).rejects.toMatchObject({ name: "RenderError", failure: "failed" });
    const nowhere = join(folder, "missing", "x.mp4");
    const size = { width: 64, height: 64 };
    const lost = {
      prompt: "x",
      ...size,
      durationSeconds: 1,
      audio: "none",
      outFile: nowhere,
    } as const;
    await expect(renderer.video(lost)).rejects.toMatchObject({ failure: "failed" });
    expect((await renderer.image(SMALL)).width).toBe(64);
  });

  test("requests outside the limits are refused at once", async () => {
    await using renderer = createBuiltinRenderer({ threads: 1 });
    const outFile = join(folder, "refused.mp4");
    const refused = [
      renderer.image({ ...SMALL, width: 8 }),
      renderer.image({ ...SMALL, width: 64.5 }),
      renderer.image({ ...SMALL, width: 5000, height: 5000 }),
      renderer.image({ ...SMALL, references: Array.from({ length: 8 }, () => new Uint8Array()) }),
      renderer.video({ ...LONG, outFile, width: 641 }),
      renderer.video({ ...LONG, outFile, durationSeconds: 31 }),
      renderer.video({ ...LONG, outFile, fps: 0 }),
      renderer.speech({ text: "", voice: "alloy", speed: 1 }),
      renderer.image({ ...SMALL, prompt: "x".repeat(64_001) }),
      renderer.music({ mode: "instrumental", title: "x", description: "x".repeat(66_000) }),
      renderer.speech({ text: "x".repeat(8_193), voice: "alloy", speed: 1 }),
      renderer.speech({ text: "x", voice: "alloy", speed: 0.2 }),
      renderer.speech({ text: "x", voice: "alloy", speed: Number.NaN }),
    ];
    for (const request of refused) await expect(request).rejects.toBeInstanceOf(RangeError);
    expect(() => createBuiltinRenderer({ threads: 0 })).toThrow(RangeError);
  });
});

describe("Pool", () => {
  test("a task that takes too long is stopped, and the pool goes on", async () => {
    await using pool = new Pool(1);
    const outFile = join(folder, "late.mp4");
    const late = pool.run("video", { ...LONG, outFile }, { timeoutMs: 300 });
    await expect(late).rejects.toMatchObject({ name: "RenderError", failure: "timeout" });
    const image = await pool.run("image", SMALL, { timeoutMs: 20_000 });
    expect(image.mimeType).toBe("image/png");
  });

  test("a request that cannot be sent to a thread is an error of that request alone", async () => {
    await using pool = new Pool(1);
    const odd = { ...SMALL, extra: () => {} };
    await expect(pool.run("image", odd, { timeoutMs: 20_000 })).rejects.toThrow();
    expect((await pool.run("image", SMALL, { timeoutMs: 20_000 })).width).toBe(64);
  });
});
