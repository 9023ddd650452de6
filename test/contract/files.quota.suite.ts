import { describe, expect, test } from "vitest";
import type { QuotaStore } from "../../services/media/files/quota.ts";

const accountId = "acct_a";
const charge = (chargeId: string, account = accountId) => ({ accountId: account, chargeId });
const t0 = Date.UTC(2026, 0, 15, 12);

/** The rules for every quota. `open` gives two clients of one empty store. */
export function quotaContract(open: () => Promise<[QuotaStore, QuotaStore]>): void {
  describe("the quota", () => {
    test("bytes are reserved, then used, then free again", async () => {
      const [quota] = await open();
      expect(await quota.usage(accountId)).toEqual({
        usedBytes: 0,
        reservedBytes: 0,
        keptBytes: 0,
      });
      expect(await quota.reserve(charge("a"), 60, 100)).toBe("reserved");
      expect(await quota.usage(accountId)).toEqual({
        usedBytes: 0,
        reservedBytes: 60,
        keptBytes: 0,
      });
      expect(await quota.commit(charge("a"))).toBe(true);
      expect(await quota.usage(accountId)).toEqual({
        usedBytes: 60,
        reservedBytes: 0,
        keptBytes: 0,
      });
      await quota.release(charge("a"), t0);
      expect(await quota.usage(accountId)).toEqual({
        usedBytes: 0,
        reservedBytes: 0,
        keptBytes: 0,
      });
    });

    test("every step may be repeated, and changes nothing then", async () => {
      const [quota, other] = await open();
      await quota.reserve(charge("kept"), 7, 100);
      await quota.commit(charge("kept"));
      expect(await quota.reserve(charge("a"), 10, 100)).toBe("reserved");
      expect(await other.reserve(charge("a"), 10, 100)).toBe("reserved");
      expect(await quota.commit(charge("a"))).toBe(true);
      expect(await other.commit(charge("a"))).toBe(true);
      expect(await quota.reserve(charge("a"), 10, 100)).toBe("reserved");
      expect(await quota.usage(accountId)).toEqual({
        usedBytes: 17,
        reservedBytes: 0,
        keptBytes: 0,
      });
      await quota.release(charge("a"), t0);
      await other.release(charge("a"), t0);
      expect(await quota.usage(accountId)).toEqual({
        usedBytes: 7,
        reservedBytes: 0,
        keptBytes: 0,
      });
    });

    test("what was released stays so, with any call that comes late", async () => {
      const [quota] = await open();
      await quota.reserve(charge("a"), 10, 100);
      await quota.release(charge("a"), t0);
      await quota.release(charge("never"), t0);
      for (const id of ["a", "never"]) {
        expect(await quota.reserve(charge(id), 10, 100)).toBe("released");
        expect(await quota.commit(charge(id))).toBe(false);
      }
      expect(await quota.commit(charge("unknown"))).toBe(false);
      expect(await quota.usage(accountId)).toEqual({
        usedBytes: 0,
        reservedBytes: 0,
        keptBytes: 0,
      });
    });

    test("the limit holds for used and reserved together, to the byte", async () => {
      const [quota] = await open();
      await quota.reserve(charge("used"), 40, 100);
      await quota.commit(charge("used"));
      await quota.reserve(charge("reserved"), 40, 100);
      expect(await quota.reserve(charge("over"), 21, 100)).toBe("full");
      expect(await quota.reserve(charge("fits"), 20, 100)).toBe("reserved");
      expect(await quota.usage(accountId)).toEqual({
        usedBytes: 40,
        reservedBytes: 60,
        keptBytes: 0,
      });
      await quota.release(charge("used"), t0);
      expect(await quota.reserve(charge("over"), 21, 100)).toBe("reserved");
    });

    test("what is kept frees the quota, and counts on disk until it is released", async () => {
      const [quota, other] = await open();
      await quota.reserve(charge("a"), 100, 100);
      await quota.commit(charge("a"));
      await quota.keep(charge("a"), t0);
      await other.keep(charge("a"), t0);
      expect(await quota.usage(accountId)).toEqual({
        usedBytes: 0,
        reservedBytes: 0,
        keptBytes: 100,
      });
      expect(await quota.reserve(charge("b"), 60, 100)).toBe("reserved");
      await quota.keep(charge("b"), t0);
      // The disk may have twice the quota.
      expect(await quota.reserve(charge("over"), 41, 100)).toBe("full");
      expect(await quota.reserve(charge("fits"), 40, 100)).toBe("reserved");
      expect(await quota.usage(accountId)).toEqual({
        usedBytes: 0,
        reservedBytes: 40,
        keptBytes: 160,
      });
      await quota.release(charge("a"), t0);
      await other.release(charge("a"), t0);
      expect(await quota.reserve(charge("over"), 60, 100)).toBe("reserved");
      expect(await quota.usage(accountId)).toEqual({
        usedBytes: 0,
        reservedBytes: 100,
        keptBytes: 60,
      });
    });

    test("what is kept is not used again, nor what never was", async () => {
      const [quota] = await open();
      await quota.reserve(charge("a"), 10, 100);
      await quota.keep(charge("a"), t0);
      await quota.keep(charge("never"), t0);
      for (const id of ["a", "never"]) {
        expect(await quota.reserve(charge(id), 10, 100)).toBe("released");
        expect(await quota.commit(charge(id))).toBe(false);
      }
      await quota.release(charge("a"), t0);
      await quota.keep(charge("a"), t0);
      expect(await quota.usage(accountId)).toEqual({
        usedBytes: 0,
        reservedBytes: 0,
        keptBytes: 0,
      });
      expect(await quota.forget(t0 + 1, 100)).toBe(2);
    });

    test("of a hundred racing for ten places beside what is kept, exactly ten get one", async () => {
      const [quota, other] = await open();
      await quota.reserve(charge("kept"), 15_000, 15_000);
      await quota.keep(charge("kept"), t0);
      await quota.reserve(charge("used"), 5_000, 15_000);
      const ends = await Promise.all(
        Array.from({ length: 100 }, (_, i) =>
          (i % 2 ? quota : other).reserve(charge(`c${i}`), 1_000, 15_000),
        ),
      );
      expect(ends.filter((end) => end === "reserved")).toHaveLength(10);
      expect(await quota.usage(accountId)).toMatchObject({ reservedBytes: 15_000 });
    });

    test("accounts do not feel each other", async () => {
      const [quota] = await open();
      await quota.reserve(charge("a"), 100, 100);
      expect(await quota.reserve(charge("b", "acct_b"), 100, 100)).toBe("reserved");
      expect(await quota.commit(charge("a", "acct_b"))).toBe(false);
      expect(await quota.usage("acct_b")).toEqual({
        usedBytes: 0,
        reservedBytes: 100,
        keptBytes: 0,
      });
    });

    test("of a hundred racing for room for ten, exactly ten get it", async () => {
      const [quota, other] = await open();
      const ends = await Promise.all(
        Array.from({ length: 100 }, (_, i) =>
          (i % 2 ? quota : other).reserve(charge(`c${i}`), 1_000, 10_999),
        ),
      );
      expect(ends.filter((end) => end === "reserved")).toHaveLength(10);
      expect(ends.filter((end) => end === "full")).toHaveLength(90);
      expect(await quota.usage(accountId)).toEqual({
        usedBytes: 0,
        reservedBytes: 10_000,
        keptBytes: 0,
      });
    });

    test("released charges are forgotten after their time, others never", async () => {
      const [quota] = await open();
      await quota.reserve(charge("used"), 1, 100);
      await quota.commit(charge("used"));
      await quota.reserve(charge("reserved"), 1, 100);
      await quota.release(charge("old"), t0);
      await quota.release(charge("new"), t0 + 10);
      expect(await quota.forget(t0 + 10, 100)).toBe(1);
      expect(await quota.reserve(charge("new"), 1, 100)).toBe("released");
      expect(await quota.reserve(charge("old"), 1, 100)).toBe("reserved");
      expect(await quota.usage(accountId)).toEqual({
        usedBytes: 1,
        reservedBytes: 2,
        keptBytes: 0,
      });
    });
  });
}
