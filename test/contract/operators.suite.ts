import { describe, expect, test } from "vitest";
import type { Operator } from "../../services/auth/operator.ts";
import type { OperatorStore } from "../../services/auth/operator-store.ts";

function operator(name: string, given: Partial<Operator> = {}): Operator {
  return { name, createdAtMs: 1, recovery: [], clients: [], epoch: "epoch_1", ...given };
}

const whole = operator("anna@example.com", {
  password: { salt: "c2FsdA==", hash: "aGFzaA==", cost: 131_072, blockSize: 8, parallelization: 1 },
  totp: { secret: "A".repeat(32), lastStep: 7 },
  recovery: ["a1", "b2"],
  setUp: { sha256: "c3", endsAtMs: 9 },
  wrongCodes: { count: 2, sinceMs: 5 },
  clients: ["here"],
  signedInAtMs: 3,
  disabled: true,
});

/** The rules for every store of operators. `open` gives two clients of one empty store. */
export function operatorStoreContract(open: () => Promise<[OperatorStore, OperatorStore]>): void {
  describe("operators", () => {
    test("are read back as they were added, by any client, and a name is there once", async () => {
      const [store, other] = await open();
      expect(await store.add(whole)).toBe(true);
      expect(await other.find(whole.name)).toStrictEqual(whole);
      expect(await other.add(operator(whole.name))).toBe(false);
      expect(await store.find(whole.name)).toStrictEqual(whole);
      expect(await store.find("ola")).toBeUndefined();
    });

    test("are listed, the oldest first", async () => {
      const [store, other] = await open();
      await store.add(operator("b", { createdAtMs: 2 }));
      await other.add(operator("c", { createdAtMs: 1 }));
      await store.add(operator("a", { createdAtMs: 2 }));
      expect((await other.list()).map(({ name }) => name)).toEqual(["c", "a", "b"]);
    });

    test("change by steps, of which each begins where another has ended", async () => {
      const [store, other] = await open();
      await store.add(operator("a", { totp: { secret: "S", lastStep: 0 } }));
      /** Uses up step 1, if it is not used up. */
      const use = (one: Operator): Operator | undefined =>
        one.totp?.lastStep === 0 ? { ...one, totp: { ...one.totp, lastStep: 1 } } : undefined;
      const both = [store, other, store, other].map((client) => client.change("a", use));
      const used = (await Promise.all(both)).filter((one) => one !== undefined);
      expect(used).toHaveLength(1);
      expect(await other.find("a")).toMatchObject({ totp: { lastStep: 1 } });
      expect(await store.change("b", use)).toBeUndefined();
    });

    test("fields that a step leaves out are gone", async () => {
      const [store, other] = await open();
      await store.add(whole);
      const { password: _1, totp: _2, wrongCodes: _3, setUp: _4, disabled: _5, ...bare } = whole;
      expect(await store.change(whole.name, () => bare)).toStrictEqual(bare);
      expect(await other.find(whole.name)).toStrictEqual(bare);
    });

    test("are removed for every client, and a repeat does nothing", async () => {
      const [store, other] = await open();
      await store.add(operator("a"));
      await store.add(operator("b"));
      await other.remove("a");
      await store.remove("a");
      expect((await store.list()).map(({ name }) => name)).toEqual(["b"]);
    });
  });
}
