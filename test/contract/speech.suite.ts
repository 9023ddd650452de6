import { describe, expect, test } from "vitest";
import type { SpeechIntent, SpeechStore } from "../../services/media/speech/store.ts";

export const t0 = Date.UTC(2026, 0, 15, 12);
export const audio = {
  format: "wav" as const,
  sizeBytes: 1_234,
  sha256: "digest",
  durationSeconds: 1.5,
};
const settling = { kind: "settling", audio } as const;
const releasing = { kind: "releasing" } as const;
const own = { owner: "owner_1" };

/** The rules for every store of speech requests. `open` gives two clients of one empty store. */
export function speechStoreContract(open: () => Promise<[SpeechStore, SpeechStore]>): void {
  describe("a request's life", () => {
    test("it is read back as it was written, and closed with its MP3", async () => {
      const [store, other] = await open();
      const intent = newIntent("a");
      expect(await store.open(intent)).toBe(true);
      expect(await other.find("speech_a")).toEqual({ ...intent, status: "open" });
      expect(await other.beat("speech_a", "owner_1", t0 + 50)).toBe(true);
      expect((await store.find("speech_a"))?.leaseUntil).toBe(t0 + 50);
      expect(await store.close("speech_a", own, settling, t0 + 5)).toBe(true);
      const closed = { ...intent, leaseUntil: 0, audio };
      expect(await other.find("speech_a")).toEqual({ ...closed, status: "settling" });
      await other.finish("speech_a", t0 + 100);
      expect(await store.find("speech_a")).toEqual({ ...closed, status: "closed" });
      await store.forget("speech_a");
      expect(await store.find("speech_a")).toBeUndefined();
    });

    test("closed ones of some keys are found, for they are erased when an account is closed", async () => {
      const [store, other] = await open();
      for (const [name, keyId] of [
        ["a", "key_1"],
        ["b", "key_2"],
        ["c", "key_1"],
        ["d", "key_3"],
      ] as const) {
        await store.open({ ...newIntent(name), keyId });
        if (name === "c") continue;
        await store.close(`speech_${name}`, own, settling, t0 + 5);
        await store.finish(`speech_${name}`, undefined);
      }
      const ids = async (keyIds: string[]) =>
        (await other.closedOf(keyIds, 9)).map(({ speechId }) => speechId).sort();
      expect(await ids(["key_1", "key_2"])).toEqual(["speech_a", "speech_b"]);
      expect(await ids([])).toEqual([]);
      expect(await other.closedOf(["key_1", "key_2"], 1)).toHaveLength(1);
    });

    test("one that came to nothing goes when its hold is released", async () => {
      const [store] = await open();
      await store.open(newIntent("a"));
      expect(await store.close("speech_a", own, releasing, t0 + 5)).toBe(true);
      await store.forget("speech_a");
      expect((await store.find("speech_a"))?.status).toBe("releasing");
      await store.finish("speech_a", t0 + 100);
      expect(await store.find("speech_a")).toBeUndefined();
    });

    test("one that was spoken and not kept goes when it is paid, and frees its slot at once", async () => {
      const [store, other] = await open();
      const idempotency = { key: "k", fingerprint: "print" };
      await store.open(newIntent("a", { idempotency }));
      expect(await store.close("speech_a", own, { kind: "settling" }, t0 + 5)).toBe(true);
      const found = await other.find("speech_a");
      expect([found?.status, found?.audio, found?.idempotency]).toEqual([
        "settling",
        undefined,
        undefined,
      ]);
      expect(await other.findBySlot({ keyId: "key_1", key: "k" })).toBeUndefined();
      expect(await other.due(t0 + 5, 10)).toMatchObject([{ speechId: "speech_a" }]);
      await other.finish("speech_a", undefined);
      expect(await store.find("speech_a")).toBeUndefined();
    });

    test("every step may be repeated, and does nothing out of its turn", async () => {
      const [store] = await open();
      const intent = newIntent("a");
      await store.open(intent);
      expect(await store.open(intent)).toBe(true);
      await store.finish("speech_a", undefined);
      await store.forget("speech_a");
      await store.defer("speech_a", t0 + 1_000_000);
      expect(await store.find("speech_a")).toEqual({ ...intent, status: "open" });
      await store.close("speech_a", own, settling, t0 + 5);
      expect(await store.beat("speech_a", "owner_1", t0 + 50)).toBe(false);
      await store.withdraw("speech_a", "owner_1");
      await store.finish("speech_a", t0 + 100);
      await store.finish("speech_a", t0 + 200);
      expect(await store.due(t0 + 100, 10)).toHaveLength(1);
      expect(await store.open(intent)).toBe(true);
      expect((await store.find("speech_a"))?.status).toBe("closed");
      await store.finish("speech_none", t0);
    });

    test("only its owner beats, closes and withdraws it, until its lease is over", async () => {
      const [store, other] = await open();
      await store.open(newIntent("a"));
      expect(await other.beat("speech_a", "owner_2", t0 + 90)).toBe(false);
      expect(await other.close("speech_a", { owner: "owner_2" }, releasing, t0)).toBe(false);
      await other.withdraw("speech_a", "owner_2");
      const early = { leaseOverAt: t0 + 29_999 };
      expect(await other.close("speech_a", early, releasing, t0)).toBe(false);
      expect(await other.close("speech_a", { leaseOverAt: t0 + 30_000 }, releasing, t0)).toBe(true);
      expect(await store.close("speech_a", own, settling, t0)).toBe(false);
      await store.open(newIntent("b"));
      await store.withdraw("speech_b", "owner_1");
      expect(await store.find("speech_b")).toBeUndefined();
    });

    test("of two closers, exactly one closes", async () => {
      const [store, other] = await open();
      for (let round = 0; round < 10; round++) {
        const id = `speech_r${round}`;
        await store.open(newIntent(`r${round}`));
        const [mine, theirs] = await Promise.all([
          store.close(id, own, settling, t0),
          other.close(id, { leaseOverAt: t0 + 30_000 }, releasing, t0),
        ]);
        expect(mine).not.toBe(theirs);
        expect((await store.find(id))?.status).toBe(mine ? "settling" : "releasing");
      }
    });
  });

  describe("idempotency slots", () => {
    const slot = { keyId: "key_1", key: "k" };
    const keyed = (name: string) =>
      newIntent(name, { idempotency: { key: "k", fingerprint: `print-${name}` } });

    test("a slot holds one request from its intent to its end, its answer included", async () => {
      const [store, other] = await open();
      await store.open(keyed("a"));
      expect(await other.open(keyed("b"))).toBe(false);
      expect(await other.find("speech_b")).toBeUndefined();
      expect(await other.open({ ...keyed("c"), keyId: "key_2" })).toBe(true);
      await store.close("speech_a", own, settling, t0);
      expect(await other.findBySlot(slot)).toMatchObject({ status: "settling", audio });
      await store.finish("speech_a", undefined);
      expect(await other.open(keyed("b"))).toBe(false);
      expect(await other.findBySlot(slot)).toMatchObject({
        speechId: "speech_a",
        status: "closed",
        idempotency: { key: "k", fingerprint: "print-a" },
      });
      await store.forget("speech_a");
      expect(await other.open(keyed("b"))).toBe(true);
    });

    test.each(["releasing", "withdrawn"])("a request that is %s frees it", async (how) => {
      const [store] = await open();
      await store.open(keyed("a"));
      if (how === "releasing") await store.close("speech_a", own, releasing, t0);
      else await store.withdraw("speech_a", "owner_1");
      expect(await store.findBySlot(slot)).toBeUndefined();
      expect(await store.open(keyed("b"))).toBe(true);
    });

    test("of fifty at once, one opens", async () => {
      const [store, other] = await open();
      const opened = await Promise.all(
        Array.from({ length: 50 }, (_, i) => (i % 2 ? store : other).open(keyed(`n${i}`))),
      );
      expect(opened.filter(Boolean)).toHaveLength(1);
    });
  });

  test("what a clock that was ahead has put off is brought forward; what is kept stays so", async () => {
    const [store, other] = await open();
    const ahead = t0 + 3 * 3_600_000;
    await store.open(newIntent("a", { leaseUntil: ahead }));
    await store.open(newIntent("b"));
    await store.close("speech_b", own, settling, ahead);
    await store.open(newIntent("c"));
    await store.close("speech_c", own, settling, t0);
    await store.finish("speech_c", ahead);
    await other.bringForward(t0, t0 + 30_000);
    const due = await other.due(t0 + 30_000, 10);
    expect(due.map(({ speechId }) => speechId).sort()).toEqual(["speech_a", "speech_b"]);
    expect(await other.due(ahead, 10)).toHaveLength(3);
  });

  test("due is what is past its lease, its time to settle, or its time to stay", async () => {
    const [store] = await open();
    for (const name of ["lease", "settle", "release", "expired", "kept"]) {
      await store.open(newIntent(name));
    }
    await store.close("speech_settle", own, settling, t0 + 10);
    await store.close("speech_release", own, releasing, t0 + 20);
    for (const [name, until] of [["expired", t0 + 30] as const, ["kept", undefined] as const]) {
      await store.close(`speech_${name}`, own, settling, t0 + 5);
      await store.finish(`speech_${name}`, until);
    }
    const due = async (now: number, limit = 10) =>
      (await store.due(now, limit)).map(({ speechId }) => speechId.slice(7));
    expect(await due(t0 + 9)).toEqual([]);
    expect(await due(t0 + 30)).toEqual(["settle", "release", "expired"]);
    expect(await due(t0 + 30_000, 2)).toEqual(["settle", "release"]);
    expect(await due(t0 * 2)).toEqual(["settle", "release", "expired", "lease"]);
    await store.defer("speech_settle", t0 + 40);
    expect(await due(t0 + 30)).toEqual(["release", "expired"]);
  });
}

export function newIntent(name: string, more: Partial<SpeechIntent> = {}): SpeechIntent {
  return {
    speechId: `speech_${name}`,
    fileId: `file_${name}`,
    accountId: "acct_a",
    keyId: "key_1",
    modelId: "speech-1",
    catalogVersion: "0123456789abcdef",
    characters: 42,
    pricePerMillion: 9_007_199_254_740_993n,
    amount: 378_302_368_699_121n,
    holdCheckAt: t0 + 60_000,
    owner: "owner_1",
    openedAt: t0,
    leaseUntil: t0 + 30_000,
    ...more,
  };
}
