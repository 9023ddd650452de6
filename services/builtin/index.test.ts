import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { systemClock } from "#kit/time/clock.ts";
import { createBuiltinRenderer } from "./index.ts";
import { readMp4 } from "./testing/probe.ts";
import { createThreads } from "./threads.ts";

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "builtin-"));
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

const small = { prompt: "a lake", width: 64, height: 64 };
const shape = { prompt: "a lake", width: 640, height: 360 };
/** Work for many seconds in small steps. If it ends early, it was asked to. */
const long = { ...shape, durationSeconds: 30, fps: 60, audio: "stereo" } as const;
const hello = { text: "Hello", voice: "alloy", speed: 1 };

const rendererWith = (threads: number) => createBuiltinRenderer({ threads, clock: systemClock });
const caller = (accountId: string, signal = new AbortController().signal) => ({
  accountId,
  signal,
});
const anyone = caller("acc_1");

describe("the built-in renderer", () => {
  test("does every kind of task in its threads", async () => {
    await using renderer = rendererWith(2);
    const outFile = join(folder, "all.mp4");
    const film = { prompt: "a lake", width: 96, height: 64, durationSeconds: 1, outFile };
    const percents: number[] = [];
    const [image, video, speech, music] = await Promise.all([
      renderer.image(small, anyone),
      renderer.video({ ...film, audio: "mono" }, anyone, (percent) => percents.push(percent)),
      renderer.speech(hello, anyone),
      renderer.music({ mode: "instrumental", title: "x" }, anyone),
    ]);
    expect(image.bytes.subarray(1, 4)).toEqual(new TextEncoder().encode("PNG"));
    expect(readMp4(await readFile(outFile)).tracks).toHaveLength(2);
    expect(video.sizeBytes).toBe((await readFile(outFile)).length);
    expect(percents.at(-1)).toBeGreaterThan(90);
    expect(speech.durationSeconds).toBeGreaterThan(0.3);
    expect(music.durationSeconds).toBeGreaterThan(30);
  });

  test("gives the same bytes from any thread", async () => {
    await using renderer = rendererWith(2);
    const [one, other] = await Promise.all([
      renderer.image(small, anyone),
      renderer.image(small, anyone),
    ]);
    expect(one.bytes).toEqual(other.bytes);
  });

  test("speech does not wait behind a film", async () => {
    await using renderer = rendererWith(1);
    const gone = new AbortController();
    const film = { ...long, outFile: join(folder, "behind.mp4") };
    const ended = expect(renderer.video(film, caller("acc_1", gone.signal))).rejects.toThrow();
    const speech = await renderer.speech(hello, anyone);
    expect(speech.durationSeconds).toBeGreaterThan(0.3);
    gone.abort(new Error("heard it"));
    await ended;
  });

  test("leaves the event loop free while four videos render", async () => {
    await using renderer = rendererWith(4);
    const names = ["one", "two", "three", "four"];
    await Promise.all(names.map(() => renderer.image(small, anyone)));
    const delay = monitorEventLoopDelay({ resolution: 10 });
    delay.enable();
    const size = { width: 320, height: 180, durationSeconds: 2, audio: "none" } as const;
    const film = (prompt: string) => ({ ...size, prompt, outFile: join(folder, `${prompt}.mp4`) });
    await Promise.all(names.map((name) => renderer.video(film(name), anyone)));
    delay.disable();
    // In this thread a video of this size would take half a second or more without a break. The bound leaves room for other processes
    // on the machine.
    expect(delay.percentile(95) / 1e6).toBeLessThan(100);
  });

  test("requests outside the limits are refused at once", async () => {
    await using renderer = rendererWith(1);
    const film = { ...long, outFile: join(folder, "refused.mp4") };
    const refused = [
      renderer.image({ ...small, width: 8 }, anyone),
      renderer.image({ ...small, width: 64.5 }, anyone),
      renderer.image({ ...small, width: 5000, height: 5000 }, anyone),
      renderer.video({ ...film, width: 641 }, anyone),
      renderer.video({ ...film, durationSeconds: 31 }, anyone),
    ];
    for (const request of refused) await expect(request).rejects.toBeInstanceOf(RangeError);
  });
});

describe("accounts take turns", () => {
  test("at one thread: a single image does not wait behind the many of another account", async () => {
    await using renderer = rendererWith(1);
    const ended: string[] = [];
    const render = async (accountId: string) => {
      await renderer.image(small, caller(accountId));
      ended.push(accountId);
    };
    const many = Array.from({ length: 8 }, () => render("many"));
    await Promise.all([...many, render("one")]);
    expect(ended.indexOf("one")).toBeLessThan(3);
  });

  test("at two: long films of one account leave a thread to those who rendered lately", async () => {
    await using renderer = rendererWith(2);
    await renderer.image(small, caller("one"));
    const gone = new AbortController();
    const films = ["first", "second"].map((name) =>
      renderer.video(
        { ...long, outFile: join(folder, `${name}.mp4`) },
        caller("many", gone.signal),
      ),
    );
    const ended = Promise.allSettled(films);
    let areOver = false;
    void Promise.race(films).catch(() => {
      areOver = true;
    });
    expect((await renderer.image(small, caller("one"))).width).toBe(64);
    expect(areOver).toBe(false);
    gone.abort(new Error("seen enough"));
    await ended;
  });
});

describe("a task ends", () => {
  test("with its caller: the thread is free again, and no file stays", async () => {
    await using renderer = rendererWith(1);
    const outFile = join(folder, "aborted.mp4");
    const gone = new AbortController();
    const started = Promise.withResolvers<void>();
    const leaving = caller("acc_1", gone.signal);
    const video = renderer.video({ ...long, outFile }, leaving, () => started.resolve());
    await started.promise;
    const reason = new Error("the caller left");
    gone.abort(reason);
    await expect(video).rejects.toBe(reason);
    expect((await renderer.image(small, anyone)).width).toBe(64);
    expect((await readdir(folder)).filter((name) => name.startsWith("aborted"))).toEqual([]);
  });

  test("before its turn where its caller leaves, without disturbing the others", async () => {
    await using renderer = rendererWith(1);
    const gone = new AbortController();
    const first = renderer.image(small, anyone);
    const second = renderer.image(small, caller("acc_1", gone.signal));
    const third = renderer.image(small, anyone);
    gone.abort(new Error("the caller left"));
    await expect(second).rejects.toThrow("the caller left");
    expect((await first).bytes).toEqual((await third).bytes);
    const before = AbortSignal.abort(new Error("before"));
    await expect(renderer.image(small, caller("acc_1", before))).rejects.toThrow("before");
  });

  test("with the renderer, which refuses what comes then", async () => {
    const renderer = rendererWith(1);
    const running = renderer.video({ ...long, outFile: join(folder, "closed.mp4") }, anyone);
    const waiting = renderer.image(small, anyone);
    const outcomes = Promise.allSettled([running, waiting]);
    await renderer[Symbol.asyncDispose]();
    const closed = { name: "UpstreamError", kind: "timeout" };
    for (const outcome of await outcomes) {
      expect(outcome).toMatchObject({ status: "rejected", reason: closed });
    }
    await expect(renderer.image(small, anyone)).rejects.toMatchObject(closed);
  });

  test("in an error that is its own: the next one is done", async () => {
    await using renderer = rendererWith(1);
    const broken = renderer.image({ ...small, references: [new Uint8Array([1])] }, anyone);
    await expect(broken).rejects.toMatchObject({ name: "BuiltinError" });
    const nowhere = { ...small, durationSeconds: 1, outFile: join(folder, "missing", "x.mp4") };
    const lost = renderer.video({ ...nowhere, audio: "none" }, anyone);
    await expect(lost).rejects.toMatchObject({ name: "BuiltinError" });
    const odd = { ...small, extra: () => {} };
    await expect(renderer.image(odd, anyone)).rejects.toThrow();
    expect((await renderer.image(small, anyone)).width).toBe(64);
  });

  test("where it takes too long, and the next one is done", async () => {
    const takeTurn = async () => ({ [Symbol.dispose]() {} });
    const options = { name: "slow", threads: 1, timeoutMs: 6_000, idleMs: 1_000, takeTurn };
    await using threads = createThreads(options);
    const late = threads.run("video", { ...long, outFile: join(folder, "late.mp4") }, anyone);
    await expect(late).rejects.toMatchObject({ name: "UpstreamError", kind: "timeout" });
    expect((await threads.run("speech", hello, anyone)).mimeType).toBe("audio/mpeg");
  });
});
