import { buffer } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { leaseMs } from "#common/paid-work/limits.ts";
import { createMetrics } from "#kit/base/metrics.ts";
import { BodyForm } from "#proto/genmesh/media/v1/media_service_pb.ts";
import { sampleMp3 } from "../../services/upstreams/media/samples.fixture.ts";
import { createWorld, upstreamAt } from "../../services/upstreams/media/world.fixture.ts";
import { createPools } from "../../services/upstreams/pools/index.ts";
import { answer as answerBy } from "../support/scripted-answers.ts";
import type { Behaviour } from "../support/scripted-behaviours.ts";
import {
  bytesAnswer,
  type ScriptedMediaUpstream,
  startScriptedMediaUpstream,
} from "../support/scripted-media-upstream.ts";
import { until } from "../support/until.ts";
import type { OpenWorldStores } from "../support/world-stores.ts";
import { mortal, type Step } from "./files.mortal.ts";
import {
  alice,
  createSpeechWorld,
  endLeases,
  hello,
  keysOf,
  loseRecord,
  mp3,
  type SpeechProcess,
  type SpeechWorld,
} from "./speech.world.ts";

const spoken = { bytes: mp3, durationSeconds: 1.5 };
const amount = 180n;
/** Row, hold, object, settling, charge, closed. With stores whose reads are steps there are more. */
const leastSteps = 6;

/** The rules for speech after a process has died, on any stores. */
export function speechCrashContract(openStores?: OpenWorldStores): void {
  let world: SpeechWorld;

  beforeEach(async () => {
    world = await createSpeechWorld({ openStores });
  });
  afterEach(() => world[Symbol.asyncDispose]());

  /** Lets a speech never end upstream. */
  function hangs(): void {
    world.speaks(() => new Promise(() => {}));
  }

  async function running(process: SpeechProcess, key: string): Promise<string> {
    const before = world.tasks.length;
    process.generate(hello(), { key }).catch(() => {});
    await until("the upstream to be asked", () => world.tasks.length > before);
    return world.tasks.at(-1)?.requestId ?? "";
  }

  describe("killed at any step", () => {
    /** Dies at a step, and another process continues. False where the process did not reach that step. */
    async function dieAt(
      at: number,
      when: "before" | "after",
      { isKeyed, isHeard }: { isKeyed: boolean; isHeard: boolean },
    ): Promise<boolean> {
      const key = {
        ...(isKeyed ? { key: `${when}${at}` } : {}),
        ...(isHeard ? { form: BodyForm.OPENAI } : {}),
      };
      const opening = await world.money();
      const calls = world.tasks.length;
      const death = mortal(at, when);
      const doomed = await world.openProcess({ wrap: death.wrap, between: death.calls });
      death.arm();
      const life: Promise<unknown> = isHeard
        ? doomed.hear(hello(), key)
        : doomed.generate(hello(), key);
      life.catch(() => {});
      await Promise.race([death.died, life]);
      if (!death.isDead()) {
        await doomed[Symbol.asyncDispose]();
        return false;
      }
      doomed.leave();
      await death.atRest();

      const heir = await world.openProcess();
      world.clock.jump(leaseMs + 1);
      // Without a key billing asks first, before the next process sweeps.
      if (isKeyed) await heir.speech.sweep();
      // The dead process may have got no answer for its hold. Billing asks about such a hold by itself.
      world.clock.jump(60_000);
      await until("no hold to be open", async () => (await world.money()).reserved === 0n);
      if (!isKeyed) {
        world.clock.jump(60_000);
        await heir.speech.sweep();
      }
      const { spent } = await world.money();
      const keys = await keysOf(heir.blobs);
      const stored = keys.length - Number(opening.spent / amount);
      // Each stored and recorded speech is charged for, and nothing else is charged or left.
      expect(spent - opening.spent).toBe(amount * BigInt(stored));
      for (const key of keys) expect(await heir.speech.isReferenced(key)).toBe(true);

      // A repeat gives the charged speech, or makes it now. Without a key it is another request.
      const again = await heir.generate(hello(), key);
      expect(again.replayed).toBe(isKeyed && stored === 1);
      const name = { parentId: again.speechId, fileId: again.audio?.fileId ?? "" };
      const found = await heir.speech.locate(name, alice);
      expect(await buffer(await heir.blobs.openRead(found?.blobKey ?? ""))).toEqual(mp3);
      await until("it to be settled", async () => (await world.money()).reserved === 0n);
      const requests = isKeyed ? 1n : BigInt(stored) + 1n;
      expect((await world.money()).spent - opening.spent).toBe(amount * requests);
      expect(world.tasks.length - calls).toBeLessThanOrEqual(2);
      await heir[Symbol.asyncDispose]();
      await doomed.closeStores();
      return true;
    }

    test.each([
      ["before", "with a key", { isKeyed: true, isHeard: false }],
      ["after", "with a key", { isKeyed: true, isHeard: false }],
      ["before", "without a key", { isKeyed: false, isHeard: false }],
      ["after", "without a key", { isKeyed: false, isHeard: false }],
      ["before", "heard, with a key", { isKeyed: true, isHeard: true }],
      ["after", "heard, with a key", { isKeyed: true, isHeard: true }],
    ] as const)(
      "%s it is made, %s: what was stored and written down is paid for, once; all else is free",
      async (when, _, how) => {
        let steps = 0;
        while (await dieAt(steps + 1, when, how)) steps++;
        expect(steps).toBeGreaterThanOrEqual(leastSteps);
        // Every entry, even of ended holds, has the values that the ledger demands, and shows the speech that was charged for.
        const charges = (await world.journal()).filter(({ spentDelta }) => spentDelta > 0n);
        expect(charges.length).toBeGreaterThan(0);
        for (const { record } of charges) expect(record?.model).toBe("speech-1");
      },
      240_000,
    );
  });

  describe("killed at any step, with a second upstream behind the first", () => {
    const route = "POST /audio/speech";
    const sound = sampleMp3(2);
    /** A process's work at its upstreams is a step too. */
    let step: Step = (run) => run();
    let drivers: Awaited<ReturnType<typeof createWorld>>;
    let upstreams: ScriptedMediaUpstream[];
    /** Speeches that each upstream made, with or without an answer. */
    let spokenAt: [first: number, next: number];

    /** A process that begins knows of no rest, and each life speaks once. */
    const newPools = () => createPools({ clock: world.clock, metrics: createMetrics() });
    beforeEach(async () => {
      drivers = await createWorld({
        pools: { ...newPools(), tries: (...asked) => newPools().tries(...asked) },
      });
      const outputs = { images: [], video: sound, sound };
      upstreams = [
        await startScriptedMediaUpstream("openai", outputs),
        await startScriptedMediaUpstream("openai", outputs),
      ];
      spokenAt = [0, 0];
      step = (run) => run();
      world.speaks((task) =>
        drivers.upstreams.speak({
          ...task,
          upstreams: upstreams.map(({ baseUrl }, at) =>
            upstreamAt(baseUrl, "OPENAI", { name: `voice-${at}` }),
          ),
        }),
      );
    });
    afterEach(async () => {
      for (const upstream of upstreams) await upstream[Symbol.asyncDispose]();
      await drivers[Symbol.asyncDispose]();
    });

    /** Sets an upstream that speaks, or does not, and its answer. Each answer is a step of the asking process. */
    function plays(at: 0 | 1, speaks: boolean, answer: Behaviour): void {
      upstreams[at]?.always(route, {
        kind: "custom",
        async handle(seen, response) {
          await step(async () => {
            if (speaks) spokenAt[at]++;
          });
          await answerBy(answer, seen, response);
        },
      });
    }

    /** A process that starts knows of no upstream that rests. */
    async function startDrivers(): Promise<void> {
      await drivers[Symbol.asyncDispose]();
      drivers = await createWorld();
    }

    /** Dies at a step, and its caller asks again. False where the process did not reach that step. */
    async function dieAt(at: number, when: "before" | "after", end: "spoken" | "refused") {
      const key = { key: `${when}${at}` };
      const [paid, before] = [(await world.money()).spent, [...spokenAt]];
      const death = mortal(at, when);
      await startDrivers();
      const doomed = await world.openProcess({ wrap: death.wrap, between: death.calls });
      step = death.step;
      death.arm();
      const life = doomed.generate(hello(), key);
      // Work after its answer is a step too.
      const ended = life.catch(() => {}).then(() => doomed.speech[Symbol.asyncDispose]());
      await Promise.race([death.died, ended]);
      doomed.leave();
      if (!death.isDead()) {
        await doomed.closeStores();
        return false;
      }
      await death.atRest();
      step = (run) => run();
      const [first, next] = spokenAt.map((times, i) => times - (before[i] ?? 0));
      // One process pays one upstream at most, once.
      expect((first ?? 0) + (next ?? 0)).toBeLessThanOrEqual(1);

      await startDrivers();
      const heir = await world.openProcess();
      world.clock.jump(leaseMs + 1);
      await heir.speech.sweep();
      world.clock.jump(60_000);
      await until("no hold to be open", async () => (await world.money()).reserved === 0n);
      const isKept = (await world.money()).spent > paid;
      const again = heir.generate(hello(), key);
      if (end === "refused") {
        expect(isKept).toBe(false);
        await expect(again).rejects.toThrow();
      } else {
        expect((await again).replayed).toBe(isKept);
        await until("it to be settled", async () => (await world.money()).reserved === 0n);
        expect((await world.money()).spent - paid).toBe(amount);
        // The first upstream took nothing. The second is paid twice only where the process died before it recorded the speech.
        const once = isKept ? next : (next ?? 0) + 1;
        expect(spokenAt.map((times, i) => times - (before[i] ?? 0))).toEqual([0, once]);
      }
      await heir[Symbol.asyncDispose]();
      await doomed.closeStores();
      return true;
    }

    test.each([
      ["before", 503],
      ["after", 503],
      ["before", 429],
      ["after", 401],
    ] as const)(
      "%s it is made, where the first answers %i: the next speaks, and a life pays once",
      async (when, status) => {
        plays(0, false, { kind: "status", status });
        plays(1, true, bytesAnswer(sound, "audio/mpeg"));
        let steps = 0;
        while (await dieAt(steps + 1, when, "spoken")) steps++;
        // The steps of a speech, and an answer of each upstream.
        expect(steps).toBeGreaterThanOrEqual(leastSteps + 2);
        await world.journal();
      },
      240_000,
    );

    test.each(["before", "after"] as const)(
      "%s it is made, where the first speaks and its answer is lost: the next is never asked",
      async (when) => {
        plays(0, true, { kind: "drop" });
        plays(1, true, bytesAnswer(sound, "audio/mpeg"));
        let steps = 0;
        while (await dieAt(steps + 1, when, "refused")) steps++;
        expect(steps).toBeGreaterThan(3);
        expect(spokenAt[1]).toBe(0);
        expect((await world.money()).spent).toBe(0n);
        await world.journal();
      },
      240_000,
    );
  });

  describe("what billing is told of a hold", () => {
    const verdict = async (process: SpeechProcess, holdId: string, accountId = alice.accountId) =>
      (await process.speech.resolveHold(holdId, accountId))?.verdict;

    test("keep while its process lives, then release, whether the sweep or billing asks first", async () => {
      await using media = await world.openProcess();
      hangs();
      const dead = await world.openProcess();
      const holdId = await running(dead, "k");
      expect(await verdict(media, holdId)).toMatchObject({ case: "keepUntil" });
      expect(await verdict(media, holdId, "acct_other")).toEqual({ case: "release", value: true });
      dead.leave();
      const ended = dead.speech[Symbol.asyncDispose]();
      world.clock.jump(leaseMs + 1);
      expect(await verdict(media, holdId)).toEqual({ case: "release", value: true });
      await ended;
      await dead.closeStores();
    });

    test("settle what is stored, release what is unknown, nothing of holds that are not speech", async () => {
      await using media = await world.openProcess();
      const { speechId } = await media.generate();
      expect(await verdict(media, speechId)).toEqual({ case: "settleAmount", value: amount });
      expect(await verdict(media, "speech_unknown")).toEqual({ case: "release", value: true });
      expect(await verdict(media, "job_unknown")).toBeUndefined();
    });
  });

  describe("a process that is slow, not dead", () => {
    test("keeps its request by beating", async () => {
      await using media = await world.openProcess();
      await media.speech.start();
      const { promise, resolve } = Promise.withResolvers<typeof spoken>();
      world.speaks(() => promise);
      const work = media.generate();
      await until("the upstream to be asked", () => world.tasks.length === 1);
      for (let seconds = 0; seconds < 180; seconds += 5) {
        await media.live(5_000);
        await media.speech.sweep();
      }
      expect((await world.money()).reserved).toBe(amount);
      resolve(spoken);
      expect((await work).costUsdMicros).toBe(amount);
    });

    test("loses it where its lease ran out, stops upstream, and leaves nothing", async () => {
      await using media = await world.openProcess();
      await using other = await world.openProcess();
      const { promise, resolve } = Promise.withResolvers<typeof spoken>();
      world.speaks(() => promise);
      const work = media.generate(hello(), { key: "k" });
      work.catch(() => {});
      await until("the upstream to be asked", () => world.tasks.length === 1);
      // It paused for so long that the other process looks first.
      await endLeases(other.database);
      await until("the other to end it", async () => {
        await other.speech.sweep();
        return (await world.money()).reserved === 0n;
      });
      world.speaks(async () => spoken);
      const again = await other.generate(hello(), { key: "k" });
      resolve(spoken);
      await expect(work).rejects.toMatchObject({ reason: 44 });
      expect(await keysOf(media.blobs)).toEqual([`speech/${again.speechId}`]);
      expect(await world.money()).toMatchObject({ reserved: 0n, spent: amount });
    });

    test("is told by its own heartbeat, and closes upstream", async () => {
      await using media = await world.openProcess();
      hangs();
      const holdId = await running(media, "k");
      await loseRecord(media.database, holdId);
      world.clock.jump(2_000);
      await until("upstream to be closed", () => world.tasks[0]?.signal.aborted);
      // Its record is gone. So media's answer to billing is to release the hold.
      world.clock.jump(60_000);
      await until("the hold to end", async () => (await world.money()).reserved === 0n);
    });
  });

  describe("billing away", () => {
    test("after the object was stored: the answer goes out, and is paid for later", async () => {
      let isAway = false;
      await using media = await world.openProcess({
        between: (next) => (req) => {
          if (isAway && req.method.name === "Apply") throw new Error("away");
          return next(req);
        },
      });
      world.speaks(async () => {
        isAway = true;
        return spoken;
      });
      const answer = await media.generate(hello(), { key: "k" });
      expect(answer.costUsdMicros).toBe(amount);
      expect((await world.money()).reserved).toBe(amount);
      expect((await media.generate(hello(), { key: "k" })).replayed).toBe(true);
      isAway = false;
      world.clock.jump(20_000);
      await until("it to be settled", async () => {
        await media.speech.sweep();
        return (await world.money()).spent === amount;
      });
      expect((await world.money()).reserved).toBe(0n);
    });
  });
}
