import { buffer } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { GenerationError } from "../../services/upstreams/media/port.ts";
import { until } from "../support/until.ts";
import type { OpenWorldStores } from "../support/world-stores.ts";
import {
  alice,
  alicesOther,
  createSpeechWorld,
  hello,
  keysOf,
  mp3,
  type Speak,
  type SpeechProcess,
  type SpeechWorld,
} from "./speech.world.ts";

const { MODEL_REQUEST_FAILED, CONTENT_POLICY_VIOLATION, INTERNAL_ERROR } = ErrorReason;
/** From a gateway that is newer than this build. */
const newerReason = 60_000 as ErrorReason;
const bodyless = { bytes: mp3, durationSeconds: 1.5 };

/** An upstream that waits until the test continues it, or its signal aborts. With `unsent` the request waits for its place there. */
function slow({ unsent = false } = {}) {
  const answer = Promise.withResolvers<void>();
  const aborted = Promise.withResolvers<unknown>();
  const speak: Speak = async ({ signal, sending }) => {
    if (!unsent) sending();
    signal.addEventListener("abort", () => aborted.resolve(signal.reason), { once: true });
    await Promise.race([
      answer.promise,
      aborted.promise.then((reason) => {
        throw reason;
      }),
    ]);
    return bodyless;
  };
  return { speak, answer: () => answer.resolve(), aborted: aborted.promise };
}

/** The rules for speech, on any stores. */
export function speechServiceContract(openStores?: OpenWorldStores): void {
  let world: SpeechWorld;
  let media: SpeechProcess;

  beforeEach(async () => {
    world = await createSpeechWorld({ openStores });
    media = await world.openProcess();
    await media.speech.start();
  });
  afterEach(async () => {
    await media[Symbol.asyncDispose]();
    await world[Symbol.asyncDispose]();
  });

  async function expectFree(spent = 0n): Promise<void> {
    await until("the hold to end", async () => (await world.money()).reserved === 0n);
    expect(await world.money()).toEqual({ reserved: 0n, spent, spendable: 1_000_000n - spent });
  }

  describe("a speech", () => {
    test("is stored, charged by its characters, and its key's alone", async () => {
      const answer = await media.generate(hello({ language: "en", speed: 1.5, user: "u" }));
      expect(answer).toMatchObject({
        speechId: expect.stringMatching(/^speech_[a-z0-9]{24}$/),
        model: "speech-1",
        audio: {
          fileId: expect.stringMatching(/^file_[a-z0-9]{24}$/),
          mimeType: "audio/mpeg",
          sizeBytes: BigInt(mp3.length),
          durationSeconds: 1.5,
        },
        characters: 12n,
        costUsdMicros: 180n,
        replayed: false,
      });
      // It is settled before its answer.
      expect(await world.money()).toEqual({ reserved: 0n, spent: 180n, spendable: 999_820n });
      expect(world.tasks).toMatchObject([
        {
          text: "Hello there.",
          voice: "alloy",
          language: "en",
          speed: 1.5,
          upstreamModel: "speech-1",
        },
      ]);
      const name = { parentId: answer.speechId, fileId: answer.audio?.fileId ?? "" };
      const found = await media.speech.locate(name, alice);
      expect(await buffer(await media.blobs.openRead(found?.blobKey ?? ""))).toEqual(mp3);
      expect(found?.sha256).toBe(answer.audio?.sha256);
      expect(await media.speech.isReferenced(found?.blobKey ?? "")).toBe(true);
      expect(await media.speech.locate(name, alicesOther)).toBeUndefined();
      expect(await media.speech.locate({ ...name, fileId: "file_x" }, alice)).toBeUndefined();
      expect(await media.speech.locate({ ...name, parentId: "speech_x" }, alice)).toBeUndefined();
    });

    test.each([
      ["a", 1n, 15n],
      ["🐈🐈", 2n, 30n],
      ["e\u0301", 2n, 30n],
      ["x".repeat(4_096), 4_096n, 61_440n],
      ["🐈".repeat(4_096), 4_096n, 61_440n],
    ])("of %j counts code points", async (input, characters, costUsdMicros) => {
      expect(await media.generate(hello({ input }))).toMatchObject({ characters, costUsdMicros });
      expect((await world.money()).spent).toBe(costUsdMicros);
    });

    const { INVALID_JSON, INVALID_TYPE, INVALID_VALUE, MISSING_REQUIRED_PARAMETER } = ErrorReason;
    test.each<[string, unknown, number, string | undefined]>([
      ["no JSON", "{", INVALID_JSON, undefined],
      ["no object", "[]", INVALID_JSON, undefined],
      ["no model", hello({ model: null }), MISSING_REQUIRED_PARAMETER, "model"],
      ["an unknown model", hello({ model: "none" }), ErrorReason.MODEL_NOT_FOUND, "model"],
      ["a model that paints", hello({ model: "image-1" }), ErrorReason.MODEL_NOT_FOUND, "model"],
      ["no input", { model: "speech-1", voice: "alloy" }, MISSING_REQUIRED_PARAMETER, "input"],
      ["an empty input", hello({ input: "" }), MISSING_REQUIRED_PARAMETER, "input"],
      ["a long input", hello({ input: "🐈".repeat(4_097) }), INVALID_VALUE, "input"],
      ["an input of another type", hello({ input: ["a"] }), INVALID_TYPE, "input"],
      ["no voice", hello({ voice: undefined }), MISSING_REQUIRED_PARAMETER, "voice"],
      ["an unknown voice", hello({ voice: "Alloy" }), ErrorReason.UNSUPPORTED_VOICE, "voice"],
      [
        "an unknown language",
        hello({ language: "xx" }),
        ErrorReason.UNSUPPORTED_LANGUAGE,
        "language",
      ],
      ["too slow a pace", hello({ speed: 0.24 }), INVALID_VALUE, "speed"],
      ["too fast a pace", hello({ speed: 4.01 }), INVALID_VALUE, "speed"],
      ["a pace in words", hello({ speed: "1" }), INVALID_TYPE, "speed"],
    ])("with %s is refused before any money", async (_, body, reason, param) => {
      await expect(media.generate(body)).rejects.toMatchObject({ reason, param });
      expect(world.tasks).toEqual([]);
      await expectFree();
    });

    test("is refused to a key that may not use the model, or that the edge refuses", async () => {
      const denied = { reason: ErrorReason.PERMISSION_DENIED, param: "model" };
      await expect(
        media.generate(hello(), { admission: { allowedModels: ["chat-1"] } }),
      ).rejects.toMatchObject(denied);
      const reasons = [
        [ErrorReason.RATE_LIMIT_EXCEEDED, ErrorReason.RATE_LIMIT_EXCEEDED],
        [newerReason, ErrorReason.PERMISSION_DENIED],
      ] as const;
      for (const [refuseWith, reason] of reasons) {
        const admission = { refuseWith, refusalMessage: "Slow down." };
        for (const key of [undefined, "k"]) {
          await expect(
            media.generate(hello(), { admission, ...(key ? { key } : {}) }),
          ).rejects.toMatchObject({ reason, message: "Slow down." });
        }
      }
      expect(world.tasks).toEqual([]);
    });
  });

  describe("a speech that ends otherwise costs nothing", () => {
    test.each<[string, Speak, number]>([
      [
        "failed upstream",
        () => Promise.reject(new GenerationError("failed", "no")),
        MODEL_REQUEST_FAILED,
      ],
      [
        "an unknown end",
        () => Promise.reject(new GenerationError("unknown", "?")),
        MODEL_REQUEST_FAILED,
      ],
      [
        "refused for its content",
        () => Promise.reject(new GenerationError("content_policy", "no")),
        CONTENT_POLICY_VIOLATION,
      ],
      ["a fault of ours", () => Promise.reject(new TypeError("oops")), INTERNAL_ERROR],
    ])("%s", async (_, speak, reason) => {
      world.speaks(speak);
      await expect(media.generate()).rejects.toMatchObject({ reason });
      await expectFree();
      expect(await keysOf(media.blobs)).toEqual([]);
    });

    test("its caller left while it waited for its place upstream", async () => {
      const upstream = slow({ unsent: true });
      world.speaks(upstream.speak);
      const left = new AbortController();
      const work = media.generate(hello(), { signal: left.signal });
      await until("the upstream to be asked", () => world.tasks.length === 1);
      expect((await world.money()).reserved).toBe(180n);
      left.abort();
      await expect(work).rejects.toThrow();
      await upstream.aborted;
      await expectFree();
    });

    test("upstream took longer than a caller waits", async () => {
      world.speaks(slow().speak);
      const work = media.generate();
      work.catch(() => {});
      await until("the upstream to be asked", () => world.tasks.length === 1);
      // In steps, because its lease is kept as time passes.
      for (let minutes = 0; minutes < 14.5; minutes += 0.25) {
        await media.live(15_000);
      }
      await expect(work).rejects.toMatchObject({ reason: ErrorReason.UPSTREAM_TIMEOUT });
      await expectFree();
    });

    test("the process stops, and had no time left", async () => {
      world.speaks(slow().speak);
      const work = media.generate();
      work.catch(() => {});
      await until("the upstream to be asked", () => world.tasks.length === 1);
      await media.speech.drain(AbortSignal.abort());
      await expect(work).rejects.toMatchObject({ reason: ErrorReason.SERVICE_UNAVAILABLE });
      expect((await world.money()).reserved).toBe(0n);
    });

    test("the wallet or the key's month does not cover it: nothing goes upstream", async () => {
      await using poor = await createSpeechWorld({ usdMicros: 179n, openStores });
      await using process = await poor.openProcess();
      await expect(process.generate(hello(), { key: "k" })).rejects.toMatchObject({
        reason: ErrorReason.INSUFFICIENT_BALANCE,
      });
      expect(await poor.money()).toEqual({ reserved: 0n, spent: 0n, spendable: 179n });
      const admission = { monthlyUsdMicrosLimit: 179n };
      await expect(media.generate(hello(), { admission })).rejects.toMatchObject({
        reason: ErrorReason.KEY_LIMIT_EXCEEDED,
      });
      expect(poor.tasks).toEqual([]);
      expect(world.tasks).toEqual([]);
      // The key is free. The record of a hold that was never made is gone.
      expect(await process.generate(hello({ input: "Hi" }), { key: "k" })).toMatchObject({
        costUsdMicros: 30n,
        replayed: false,
      });
    });
  });

  describe("a speech that went upstream and that its caller left", () => {
    const leave = async (key?: string) => {
      const left = new AbortController();
      const call = { signal: left.signal, ...(key ? { key } : {}) };
      const work = media.generate(hello(), call);
      await until("the upstream to be asked", () => world.tasks.length === 1);
      left.abort();
      await expect(work).rejects.toThrow();
    };

    test("is stored and paid for, and its key's retry gets it", async () => {
      const upstream = slow();
      world.speaks(upstream.speak);
      await leave("k");
      await expect(media.generate(hello({ input: "Other." }), { key: "k" })).rejects.toMatchObject({
        reason: ErrorReason.IDEMPOTENCY_KEY_REUSED,
      });
      const retry = media.generate(hello(), { key: "k" });
      upstream.answer();
      const { replayed, speechId } = await retry;
      expect(replayed).toBe(true);
      expect(await keysOf(media.blobs)).toEqual([`speech/${speechId}`]);
      expect(world.tasks).toHaveLength(1);
      await expectFree(180n);
    });

    test("is awaited by a process that stops", async () => {
      const upstream = slow();
      world.speaks(upstream.speak);
      await leave();
      const drained = media.speech.drain(new AbortController().signal);
      upstream.answer();
      await drained;
      expect(await world.money()).toEqual({ reserved: 0n, spent: 180n, spendable: 999_820n });
      expect(await keysOf(media.blobs)).toHaveLength(1);
    });

    test("costs nothing where it takes longer than a speech may", async () => {
      world.speaks(slow().speak);
      await leave();
      for (let minutes = 0; minutes < 14.5; minutes += 0.25) await media.live(15_000);
      await expectFree();
    });
  });

  describe("a speech's idempotency key", () => {
    test("of fifty at once: one call upstream, one charge, one answer", async () => {
      const upstream = slow();
      world.speaks(upstream.speak);
      const all = Array.from({ length: 50 }, () => media.generate(hello(), { key: "k" }));
      await until("the upstream to be asked", () => world.tasks.length === 1);
      await expect(media.generate(hello({ input: "Other." }), { key: "k" })).rejects.toMatchObject({
        reason: ErrorReason.IDEMPOTENCY_KEY_REUSED,
      });
      upstream.answer();
      const answers = await Promise.all(all);
      expect(new Set(answers.map(({ speechId }) => speechId)).size).toBe(1);
      expect(answers.filter(({ replayed }) => !replayed)).toHaveLength(1);
      expect(world.tasks).toHaveLength(1);
      await expectFree(180n);
    });

    test("replays the answer, also after a restart, also where the edge would refuse it by then", async () => {
      const first = await media.generate(hello(), { key: "k" });
      const same = { voice: "alloy", input: "Hello there.", model: "speech-1" };
      expect(await media.generate(same, { key: "k" })).toEqual({ ...first, replayed: true });
      await media[Symbol.asyncDispose]();
      media = await world.openProcess();
      const admission = { refuseWith: ErrorReason.PERMISSION_DENIED };
      expect(await media.generate(hello(), { key: "k", admission })).toEqual({
        ...first,
        replayed: true,
      });
      await expect(media.generate(hello({ speed: 2 }), { key: "k" })).rejects.toMatchObject({
        reason: ErrorReason.IDEMPOTENCY_KEY_REUSED,
      });
      expect(world.tasks).toHaveLength(1);
      const other = await media.generate(hello(), { key: "k", principal: alicesOther });
      expect(other.speechId).not.toBe(first.speechId);
      for (const key of ["", "k".repeat(256)]) {
        await expect(media.generate(hello(), { key })).rejects.toMatchObject({
          reason: ErrorReason.INVALID_IDEMPOTENCY_KEY,
        });
      }
    });

    test("is free again after a failure", async () => {
      world.speaks(() => Promise.reject(new GenerationError("unknown", "?")));
      await expect(media.generate(hello(), { key: "k" })).rejects.toThrow();
      world.speaks(async () => bodyless);
      const again = await media.generate(hello({ input: "Other" }), { key: "k" });
      expect(again.replayed).toBe(false);
      await expectFree(75n);
    });

    test("joins: before it is sent, only the last caller who leaves ends it", async () => {
      const upstream = slow({ unsent: true });
      world.speaks(upstream.speak);
      const [leader, joiner] = [new AbortController(), new AbortController()];
      const first = media.generate(hello(), { key: "k", signal: leader.signal });
      await until("the upstream to be asked", () => world.tasks.length === 1);
      const second = media.generate(hello(), { key: "k", signal: joiner.signal });
      await new Promise((resolve) => setImmediate(resolve));
      leader.abort();
      await expect(first).rejects.toThrow();
      expect(world.tasks[0]?.signal.aborted).toBe(false);
      joiner.abort();
      await expect(second).rejects.toThrow();
      await upstream.aborted;
      await expectFree();
      world.speaks(async () => bodyless);
      expect((await media.generate(hello(), { key: "k" })).replayed).toBe(false);
    });

    test("waits for another process, and answers with what that one made", async () => {
      const upstream = slow();
      world.speaks(upstream.speak);
      await using other = await world.openProcess();
      const first = media.generate(hello(), { key: "k" });
      await until("the upstream to be asked", () => world.tasks.length === 1);
      const second = other.generate(hello(), { key: "k" });
      await new Promise((resolve) => setTimeout(resolve, 50));
      upstream.answer();
      const [one, two] = await Promise.all([first, second]);
      expect(two).toEqual({ ...one, replayed: true });
      expect(world.tasks).toHaveLength(1);
      await expectFree(180n);
    });
  });

  describe("speeches are kept", () => {
    test("for their time, then they go with their bytes", async () => {
      await using short = await world.openProcess({ retentionMs: 3_600_000 });
      const { speechId, audio } = await short.generate(hello(), { key: "short" });
      const kept = await media.generate(hello());
      // The clock runs on by itself, and the code below has ten minutes.
      world.clock.jump(3_000_000);
      await short.speech.sweep();
      const name = { parentId: speechId, fileId: audio?.fileId ?? "" };
      expect(await short.speech.locate(name, alice)).toBeDefined();
      world.clock.jump(600_001);
      await short.speech.sweep();
      expect(await short.speech.locate(name, alice)).toBeUndefined();
      expect(await keysOf(media.blobs)).toEqual([`speech/${kept.speechId}`]);
      expect((await short.generate(hello(), { key: "short" })).replayed).toBe(false);
    });
  });
}
