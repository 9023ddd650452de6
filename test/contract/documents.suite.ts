import { beforeEach, describe, expect, test } from "vitest";
import { type Documents, removed, type Stretch } from "#kit/documents/port.ts";
import { type Thing, type ThingSchema, thing, thingKinds } from "./documents.world.ts";

type Things = Documents<Thing, keyof ThingSchema["indexes"]>;

/** What documents promise on any database. `open` gives two clients of one kind of things, of which there are none. */
export function documentsContract(open: (kind: ThingSchema) => Promise<[Things, Things]>): void {
  describe.each(thingKinds.map((kind) => [kind.name, kind] as const))("%s", (_, kind) => {
    let store: Things;
    let other: Things;
    beforeEach(async () => {
      [store, other] = await open(kind);
    });
    const ids = async (index: keyof ThingSchema["indexes"], stretch: Stretch) =>
      (await other.seek(index, stretch)).map(({ thingId }) => thingId);
    const raised = (one: Thing): Thing => ({ ...one, n: one.n + 1 });

    test("a document comes out as it went in", async () => {
      const full = thing("a", {
        open: true,
        dueAt: 7,
        slot: { key: "k", print: "p" },
        more: { deep: [1, "x"] },
      });
      expect(await store.insert(full)).toBe(true);
      expect(await store.insert(thing("b", { dueAt: undefined }))).toBe(true);
      expect(await other.find("a")).toStrictEqual(full);
      expect(await other.find("b")).toStrictEqual(thing("b"));
      expect(await other.seek("list", { of: ["me"] })).toStrictEqual([full, thing("b")]);
      expect(await other.find("c")).toBeUndefined();
    });

    test("its id and its place in a unique index are had once, until they are free", async () => {
      const slot = { key: "k", print: "p" };
      await store.insert(thing("a", { slot }));
      expect(await other.insert(thing("a", { n: 5 }))).toBe(false);
      expect(await other.insert(thing("b", { slot: { key: "k", print: "q" } }))).toBe(false);
      expect(await other.insert(thing("c", { ownerId: "you", slot }))).toBe(true);
      expect(await ids("slot", { of: ["me", "k"] })).toEqual(["a"]);
      expect(await other.find("b")).toBeUndefined();
      await store.change("a", (one) => ({ ...raised(one), slot: undefined }));
      expect(await other.insert(thing("b", { slot }))).toBe(true);
    });

    test("a step leads to what it answers, away, or nowhere", async () => {
      await store.insert(thing("a", { dueAt: 3, open: true, more: { deep: [1] } }));
      const { more: _, open: __, ...rest } = thing("a", { n: 1, amount: 2n ** 61n, text: "new" });
      const next = { ...rest, slot: { key: "s", print: "p" } };
      expect(await store.change("a", () => ({ ...next, dueAt: undefined }))).toEqual(next);
      expect(await other.find("a")).toStrictEqual(next);
      expect(await ids("open", { of: [true] })).toEqual([]);
      expect(await other.change("a", () => undefined)).toBeUndefined();
      expect(await other.change("a", (one) => one)).toEqual(next);
      expect(await other.change("none", () => next)).toBeUndefined();
      expect(await other.change("a", () => removed)).toEqual(next);
      expect(await store.find("a")).toBeUndefined();
      await store.remove("a");
    });

    test("a step begins from a first document where there is none", async () => {
      const change = (id: string, client = store) =>
        client.change(id, raised, { first: thing(id, { at: 3 }) });
      expect(await change("a")).toEqual(thing("a", { n: 1, at: 3 }));
      await store.set("a", { at: 9 });
      expect(await change("a", other)).toEqual(thing("a", { n: 2, at: 9 }));
      const all = Array.from({ length: 20 }, (_, i) => change("b", i % 2 ? store : other));
      await Promise.all(all);
      expect(await store.find("b")).toEqual(thing("b", { n: 20, at: 3 }));
      const first = thing("c");
      expect(await store.change("c", () => undefined, { first })).toBeUndefined();
      expect(await store.change("c", () => removed, { first })).toBeUndefined();
      expect(await store.find("c")).toBeUndefined();
    });

    test("fields are set whatever the document is", async () => {
      await store.insert(thing("a", { dueAt: 4, open: true }));
      await Promise.all([
        store.set("a", { open: undefined, text: "t" }),
        other.change("a", raised),
        other.set("a", { dueAt: 5 }),
      ]);
      await store.set("none", { at: 1 });
      expect(await other.find("a")).toStrictEqual(thing("a", { n: 1, dueAt: 5, text: "t" }));
      expect(await other.find("none")).toBeUndefined();
    });

    test("no change of two clients is lost, and one alone wins what one may have", async () => {
      await store.insert(thing("a"));
      await store.insert(thing("b", { open: true }));
      const both = Array.from({ length: 10 }, (_, i) => [store, other][i % 2] as Things);
      await Promise.all(both.map((client) => client.change("a", raised)));
      expect(await store.find("a")).toMatchObject({ n: 10 });
      const take = (one: Thing) => (one.open ? { ...one, open: undefined } : undefined);
      const taken = await Promise.all(both.map((client) => client.change("b", take)));
      expect(taken.filter(Boolean)).toHaveLength(1);
      const away = await Promise.all(both.map((client) => client.change("b", () => removed)));
      expect(away.filter(Boolean)).toHaveLength(1);
    });

    test("a change and what is set for many at the same time are both made", async () => {
      for (const id of ["a", "b"]) await store.insert(thing(id, { dueAt: 5 }));
      const setting = () => other.setSome("over", { upTo: 5 }, { dueAt: 9 });
      await Promise.all([store.change("a", raised), setting(), store.change("b", raised)]);
      expect(await store.find("a")).toMatchObject({ n: 1, dueAt: 9 });
      expect(await store.find("b")).toMatchObject({ n: 1, dueAt: 9 });
    });

    test("a stretch is of some values, from and to a place, in either order", async () => {
      for (const [id, at] of [
        ["a", 1],
        ["b", 2],
        ["c", 2],
        ["d", 3],
      ] as const) {
        await store.insert(thing(id, { at, dueAt: 10 - at }));
      }
      await store.insert(thing("e", { ownerId: "you", at: 2, dueAt: 1, text: "" }));
      const of = ["me"];
      expect(await ids("list", { of })).toEqual(["a", "b", "c", "d"]);
      expect(await ids("list", { of, newestFirst: true, limit: 2 })).toEqual(["d", "c"]);
      expect(await ids("list", { of, behind: [2, "b"] })).toEqual(["c", "d"]);
      expect(await ids("list", { of, behind: [2, "c"], newestFirst: true })).toEqual(["b", "a"]);
      expect(await ids("list", { of, skip: 1, limit: 2 })).toEqual(["b", "c"]);
      expect(await ids("list", { of, upTo: 2 })).toEqual(["a", "b", "c"]);
      expect(await ids("newest", { of, newestFirst: true, limit: 1 })).toEqual(["d"]);
      expect(await ids("due", { of, behind: [8] })).toEqual(["a"]);
      expect(await ids("over", { upTo: 8 })).toEqual(["d", "b", "c"]);
      expect(await ids("mine", { upTo: 2, and: { dueAt: 9 } })).toEqual(["a"]);
      expect(await ids("list", { of, and: { dueAt: null } })).toEqual([]);
      await store.set("b", { dueAt: undefined });
      expect(await ids("list", { of, and: { dueAt: null } })).toEqual(["b"]);
      expect(await other.count("list", { of })).toBe(4);
      expect(await other.count("list", { of, and: { dueAt: null } })).toBe(1);
      expect(await other.count("list", { of: ["me"], behind: [2, "c"] })).toBe(1);
      expect((await ids("due", { of: [["me", "you"]], upTo: 7 })).sort()).toEqual(["d", "e"]);
      const [bare] = await other.seek("list", { of, limit: 1, without: ["text", "n"] });
      const { text: _, n: __, ...left } = thing("a", { at: 1, dueAt: 9 });
      expect(bare).toStrictEqual(left);
    });

    test("of the next value that has one up to a bound, the first", async () => {
      for (const [id, ownerId, dueAt] of [
        ["a", "x", 5],
        ["b", "y", 2],
        ["c", "y", 1],
        ["d", "z", 1],
      ] as const) {
        await store.insert(thing(id, { ownerId, dueAt }));
      }
      await store.insert(thing("e", { ownerId: "w" }));
      const next = async (behind: string, upTo: number) =>
        (await other.firstOfNext("due", { behind, upTo }))?.thingId;
      expect(await next("", 2)).toBe("c");
      expect(await next("", 5)).toBe("a");
      expect(await next("y", 2)).toBe("d");
      expect(await next("z", 9)).toBeUndefined();
      expect(await next("", 0)).toBeUndefined();
    });

    test("some are set or removed, so many at most, and told how many", async () => {
      for (const [i, id] of ["a", "b", "c", "d"].entries())
        await store.insert(thing(id, { at: i, dueAt: i }));
      expect(await store.setSome("over", { upTo: 2, limit: 2 }, { dueAt: undefined })).toBe(2);
      expect(await ids("over", { upTo: 99 })).toEqual(["c", "d"]);
      expect(await store.setSome("over", { upTo: 1 }, { text: "" })).toBe(0);
      expect(
        await store.setSome("over", { behind: [2] }, { dueAt: 4, text: "t", open: true }),
      ).toBe(1);
      expect(await ids("open", { of: [true], upTo: 4 })).toEqual(["d"]);
      expect(
        await store.removeSome("list", { of: ["me"], newestFirst: true, skip: 2, limit: 1 }),
      ).toBe(1);
      expect(await ids("list", { of: ["me"] })).toEqual(["a", "c", "d"]);
      expect(await other.removeSome("list", { of: ["you"] })).toBe(0);
      expect(await other.removeSome("list", { of: ["me"] })).toBe(3);
      expect(await ids("list", { of: ["me"] })).toEqual([]);
    });
  });
}
