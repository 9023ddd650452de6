import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { leaseMs } from "#common/paid-work/limits.ts";
import { ErrorReason, RefusalError } from "#kit/base/errors.ts";
import { UpstreamError } from "#kit/upstream/errors.ts";
import {
  type ApplyRequest,
  EntryKind,
  HoldKind,
  Unit,
} from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { BodyForm } from "#proto/genmesh/media/v1/media_service_pb.ts";
import { openSpeechStore } from "../../services/media/speech/context.ts";
import { UnkeptSpeechError } from "../../services/upstreams/media/port.ts";
import { until } from "../support/until.ts";
import type { OpenWorldStores } from "../support/world-stores.ts";
import { mortalDatabase } from "./files.mortal.ts";
import { newIntent } from "./speech.suite.ts";
import {
  alice,
  createSpeechWorld,
  endLeases,
  hello,
  keysOf,
  mp3,
  type SpeechProcess,
  type SpeechWorld,
} from "./speech.world.ts";

const amount = 180n;

/** The rules for charges of speech, on any stores. */
export function speechMoneyContract(openStores?: OpenWorldStores): void {
  let world: SpeechWorld;

  beforeEach(async () => {
    world = await createSpeechWorld({ openStores });
  });
  afterEach(() => world[Symbol.asyncDispose]());

  test("asks for its money once, and leaves its record in the journal", async () => {
    await using media = await world.openProcess();
    world.speaks(async ({ tried }) => {
      tried?.("one", { kind: "too_many_requests", status: 429 });
      tried?.("two");
      return { bytes: mp3, durationSeconds: 1.5 };
    });
    const { speechId } = await media.generate();
    const [opened, drawn, ...more] = await world.journal();
    expect(more).toEqual([]);
    expect(opened).toMatchObject({ kind: EntryKind.HOLD, holdId: speechId, heldDelta: 180n });
    expect(drawn).toMatchObject({
      kind: EntryKind.DRAW,
      holdId: speechId,
      spentDelta: 180n,
      record: {
        model: "speech-1",
        operation: "speech",
        status: "completed",
        upstream: "two",
        failedTries: [{ lane: "one", kind: "too_many_requests", status: 429 }],
        characters: 12n,
        startTime: expect.anything(),
        endTime: expect.anything(),
      },
    });
  });

  test("writes its row while its money is held, and is sent when both are there", async () => {
    const asked = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<void>();
    await using other = await world.openProcess({
      between: (next) => async (req) => {
        asked.resolve();
        await answer.promise;
        return next(req);
      },
    });
    const speaking = other.generate();
    await asked.promise;
    // No lease ends in the next hour. So this finds the row of a request whose hold has no answer yet.
    const { store } = openSpeechStore(other.database);
    const inAnHour = world.clock.now() + 3_600_000;
    const [row] = await until("its row", async () => {
      const rows = await store.due(inAnHour, 1);
      return rows.length > 0 ? rows : undefined;
    });
    expect(row).toMatchObject({ status: "open", amount: 180n });
    expect(world.tasks).toHaveLength(0);
    answer.resolve();
    expect((await speaking).speechId).toBe(row?.speechId);
  });

  test.each(["k", undefined])(
    "is not sent where it was ended before its money was held (key: %s)",
    async (key) => {
      await using heir = await world.openProcess();
      let isStill = true;
      await using media = await world.openProcess({
        between: (next) => async (req) => {
          if (isStill) {
            isStill = false;
            // It pauses until its lease is over, and the other process has ended its request.
            const { store } = openSpeechStore(heir.database);
            const inAnHour = () => world.clock.now() + 3_600_000;
            await until("its row", async () => (await store.due(inAnHour(), 1)).length === 1);
            await endLeases(heir.database);
            await heir.speech.sweep();
            expect(await store.due(inAnHour(), 1)).toEqual([]);
          }
          return next(req);
        },
      });
      const asked = media.generate(hello(), key === undefined ? {} : { key });
      await expect(asked).rejects.toMatchObject({ reason: ErrorReason.SERVICE_UNAVAILABLE });
      expect(world.tasks).toHaveLength(0);
      expect(await world.money()).toMatchObject({ reserved: 0n, spent: 0n });
      expect(await world.journal()).toMatchObject([{ kind: EntryKind.DRAW, heldDelta: 0n }]);
    },
  );

  describe("a speech that was spoken and cannot be kept", () => {
    test("is paid for, tells its caller what it cost, and frees its key", async () => {
      await using media = await world.openProcess();
      world.speaks(async ({ sending }) => {
        sending();
        throw new UnkeptSpeechError(new UpstreamError("too_large"));
      });
      await expect(media.generate(hello(), { key: "k" })).rejects.toMatchObject({
        reason: ErrorReason.MODEL_REQUEST_FAILED,
        metadata: { cost: "180" },
        message: expect.stringContaining("is charged"),
      });
      expect(await world.money()).toMatchObject({ reserved: 0n, spent: amount });
      expect(await keysOf(media.blobs)).toEqual([]);
      expect((await world.journal())[1]).toMatchObject({
        spentDelta: amount,
        record: { status: "failed", characters: 12n, mediaMs: 0n },
      });
      world.speaks(async () => ({ bytes: mp3, durationSeconds: 1.5 }));
      expect((await media.generate(hello(), { key: "k" })).replayed).toBe(false);
      expect(await world.money()).toMatchObject({ reserved: 0n, spent: 2n * amount });
    });

    test.each(["before", "after"] as const)(
      "is paid for also where the store is away as that is written down (%s it was)",
      async (when) => {
        let awayFor = 0;
        await using media = await world.openProcess({
          wrap: ({ database, blobs }) => ({
            blobs,
            database: mortalDatabase(database, async (run) => {
              if (awayFor-- <= 0) return run();
              if (when === "after") await run();
              throw new RefusalError(ErrorReason.SERVICE_UNAVAILABLE);
            }),
          }),
        });
        world.speaks(async ({ sending }) => {
          sending();
          // Billing is away for one pause. A heartbeat after a second pause would find the row closed, and would stop the work.
          awayFor = 1;
          throw new UnkeptSpeechError(new UpstreamError("too_large"));
        });
        const asked = media.generate();
        await expect(asked).rejects.toMatchObject({ metadata: { cost: "180" } });
        expect(await world.money()).toMatchObject({ reserved: 0n, spent: amount });
        expect(awayFor).toBeLessThanOrEqual(0);
      },
    );

    test("is asked for at its whole length where it is built in: that is six minutes at most", async () => {
      await using media = await world.openProcess();
      const longest = { input: "中".repeat(4_096), speed: 0.25, response_format: "wav" };
      await media.generate(hello(longest), { form: BodyForm.OPENAI });
      expect(world.tasks).toHaveLength(1);
    });
  });

  describe("beside a replica of before, which settles and releases", () => {
    const wallet = { accountId: alice.accountId, unit: Unit.USD_MICROS };
    const mp3Of = {
      format: "mp3" as const,
      sizeBytes: mp3.length,
      sha256: "digest",
      durationSeconds: 1.5,
    };
    const owner = "owner_before";

    /** A request in the state in which that replica leaves it: intent and hold. */
    async function begun(process: SpeechProcess, name: string, { isHeld = true } = {}) {
      const { store } = openSpeechStore(process.database);
      const now = world.clock.now();
      const { accountId, keyId } = alice;
      const of = { accountId, keyId, amount, owner, openedAt: now, leaseUntil: now + leaseMs };
      const intent = newIntent(name, { ...of, holdCheckAt: now + 60_000 });
      await store.open(intent);
      const { speechId: holdId } = intent;
      const checkTime = timestampFromMs(intent.holdCheckAt);
      const hold = { ...wallet, holdId, amount, keyId, kind: HoldKind.SPEECH, ref: holdId };
      const reserve = () => world.billing.reserve({ ...hold, checkTime });
      if (isHeld) await reserve();
      return { store, holdId, reserve };
    }

    test.each([
      ["settled", true],
      ["not settled", false],
    ])("draws what that one stored and has %s, once", async (_, isSettled) => {
      await using media = await world.openProcess();
      const { store, holdId } = await begun(media, "a");
      await media.blobs.put(`speech/${holdId}`, once(mp3), AbortSignal.timeout(60_000));
      await store.close(holdId, { owner }, { kind: "settling", audio: mp3Of }, world.clock.now());
      if (isSettled) await world.billing.settle({ ...wallet, holdId, amount });
      await media.speech.sweep();
      expect(await world.money()).toMatchObject({ reserved: 0n, spent: amount });
      expect((await store.find(holdId))?.status).toBe("closed");
      // The first process reaches its own end late, and settles the charged amount.
      const late = await world.billing.settle({ ...wallet, holdId, amount });
      expect(late).toMatchObject({ chargedAmount: amount, replayed: true });
      expect(await world.money()).toMatchObject({ reserved: 0n, spent: amount });
      await world.journal();
    });

    test("draws what that one wrote down as spoken and not kept, once, and keeps nothing of it", async () => {
      await using media = await world.openProcess();
      const { store, holdId } = await begun(media, "a");
      await store.close(holdId, { owner }, { kind: "settling" }, world.clock.now());
      const verdict = await media.speech.resolveHold(holdId, alice.accountId);
      expect(verdict?.verdict).toEqual({ case: "settleAmount", value: amount });
      await media.speech.sweep();
      expect(await world.money()).toMatchObject({ reserved: 0n, spent: amount });
      expect(await store.find(holdId)).toBeUndefined();
      await world.journal();
    });

    test("ends what it left open, at no charge, and no copy of its hold can be opened after that", async () => {
      await using media = await world.openProcess();
      const held = await begun(media, "a");
      const unheld = await begun(media, "b", { isHeld: false });
      world.clock.jump(leaseMs + 1);
      await media.speech.sweep();
      expect(await held.store.find(held.holdId)).toBeUndefined();
      expect(await unheld.store.find(unheld.holdId)).toBeUndefined();
      expect(await world.money()).toMatchObject({ reserved: 0n, spent: 0n });
      await expect(unheld.reserve()).rejects.toMatchObject({
        reason: ErrorReason.OPERATION_CONFLICT,
      });
      await world.journal();
    });

    test("is settled by a billing that knows no draws", async () => {
      await using media = await world.openProcess({
        between: (next) => (req) => {
          const { operations = [] } = req.message as Partial<ApplyRequest>;
          const draws = operations.some(({ operation }) => operation.case === "draw");
          if (draws) throw new RefusalError(ErrorReason.INVALID_ARGUMENT);
          return next(req);
        },
      });
      await media.generate(hello(), { key: "k" });
      const [, ended] = await world.journal();
      expect(ended).toMatchObject({ kind: EntryKind.SETTLE, spentDelta: amount });
      world.speaks(() => Promise.reject(new Error("no")));
      await expect(media.generate(hello())).rejects.toThrow();
      await until("the hold to end", async () => (await world.money()).reserved === 0n);
      expect((await world.money()).spent).toBe(amount);
    });
  });
}

async function* once(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  yield bytes;
}
