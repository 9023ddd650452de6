import { expect, test } from "vitest";
import type { StoredKey, StoredKeyStore } from "../../services/catalog/stored-key.ts";

/** A stored key, as the store takes it. */
export const storedKey = (name: string, more: Partial<StoredKey> = {}): StoredKey => ({
  name,
  sealed: `v1.${name}`,
  hint: "wxyz",
  setAtMs: 1_700_000_000_000,
  actor: "admin token",
  ...more,
});

/** The rules for every store of stored keys. `open` gives two clients of one empty store. */
export function storedKeyContract(open: () => Promise<[StoredKeyStore, StoredKeyStore]>): void {
  test("a key is listed by all clients in the order of its setting, and replaced by its name", async () => {
    const [store, other] = await open();
    expect(await store.list()).toEqual([]);
    const fal = storedKey("fal", { setAtMs: 2 });
    const xai = storedKey("x.ai", { setAtMs: 1 });
    await store.set(fal);
    await other.set(xai);
    expect(await store.list()).toEqual([xai, fal]);
    const anew = storedKey("x.ai", { setAtMs: 3, sealed: "v1.other", hint: "", actor: "anna" });
    await store.set(anew);
    expect(await other.list()).toEqual([fal, anew]);
  });

  test("of two who set one key at once, one whole key stays", async () => {
    const [store, other] = await open();
    const mine = storedKey("fal", { sealed: "v1.mine", actor: "me" });
    const yours = storedKey("fal", { sealed: "v1.yours", actor: "you" });
    await Promise.all([store.set(mine), other.set(yours)]);
    const [kept, ...more] = await store.list();
    expect([mine, yours]).toContainEqual(kept);
    expect(more).toEqual([]);
  });

  test("a removed key is gone for all, and may be removed and set again", async () => {
    const [store, other] = await open();
    await store.set(storedKey("fal"));
    await other.remove("fal");
    await store.remove("fal");
    expect(await store.list()).toEqual([]);
    await store.set(storedKey("fal"));
    expect(await other.list()).toEqual([storedKey("fal")]);
  });

  test("a seal is replaced where it is as it was, and never undoes what was set since", async () => {
    const [store, other] = await open();
    const was = storedKey("fal");
    await store.set(was);
    await store.reseal(was, "v1.again");
    expect(await other.list()).toEqual([{ ...was, sealed: "v1.again" }]);
    await other.set(storedKey("fal", { sealed: "v1.new" }));
    await store.reseal({ ...was, sealed: "v1.again" }, "v1.late");
    await store.reseal(storedKey("gone"), "v1.late");
    expect(await store.list()).toEqual([storedKey("fal", { sealed: "v1.new" })]);
  });
}
