import { expect, test } from "vitest";
import type { CatalogVersion, VersionStore } from "../../services/catalog/version.ts";

/** A version, as the store takes it. */
export const version = (number: number, more: Partial<CatalogVersion> = {}): CatalogVersion => ({
  number,
  actor: "admin token",
  note: "dearer images",
  madeAtMs: 1_700_000_000_000 + number,
  sha256: "ab".repeat(32),
  models: 3,
  operationId: `op-${number}`,
  text: `models: [] # ${number}`,
  workflows: new Map(),
  ...more,
});

/** The facts of a version: all but its text. */
const factsOf = ({ text: _, workflows: _files, ...facts }: CatalogVersion) => facts;

/** The rules for every store of versions. `open` gives two clients of one empty store. */
export function versionStoreContract(open: () => Promise<[VersionStore, VersionStore]>): void {
  test("a version is added once, found with its text, and listed without, newest first", async () => {
    const [store, other] = await open();
    expect(await store.newest()).toBeUndefined();
    expect(await store.find(1)).toBeUndefined();
    for (const number of [0, 1, 2, 10]) expect(await store.add(version(number))).toBe(true);
    expect(await other.newest()).toEqual(factsOf(version(10)));
    expect(await other.find(2)).toEqual(version(2));
    const numbers = async (below: number, limit: number) =>
      (await other.list({ below, limit })).map(({ number }) => number);
    expect(await numbers(Number.MAX_SAFE_INTEGER, 9)).toEqual([10, 2, 1, 0]);
    expect(await numbers(10, 2)).toEqual([2, 1]);
    expect(await store.list({ below: 1, limit: 9 })).toEqual([factsOf(version(0))]);
    expect(await other.madeBy("op-2")).toEqual(factsOf(version(2)));
    expect(await other.madeBy("op-3")).toBeUndefined();
  });

  test("of two for one number one is added, and of two by one act as well", async () => {
    const [store, other] = await open();
    const both = await Promise.all([
      store.add(version(1, { operationId: "mine", actor: "me" })),
      other.add(version(1, { operationId: "yours", actor: "you" })),
    ]);
    expect(both.toSorted()).toEqual([false, true]);
    const [winner, loser] = both[0] ? ["mine", "yours"] : ["yours", "mine"];
    expect((await store.find(1))?.operationId).toBe(winner);
    expect(await store.madeBy(`${loser}`)).toBeUndefined();
    expect(await store.add(version(2, { operationId: `${winner}` }))).toBe(false);
    expect((await other.newest())?.number).toBe(1);
  });

  test("workflow files come back as they were, whatever their names are", async () => {
    const [store, other] = await open();
    const workflows = new Map([["folder/a.b.json", { text: '{"3":{}}' }]]);
    await store.add(version(1, { workflows }));
    expect((await other.find(1))?.workflows).toEqual(workflows);
  });
}
