import { afterEach, beforeEach, expect, test } from "vitest";
import { createMongoDocuments, mongoSchemaOf } from "#kit/documents/mongo.ts";
import { type Documents, removed } from "#kit/documents/port.ts";
import { migrate } from "#kit/store/mongo/migrate.ts";
import { describeMongo } from "../support/mongo.ts";
import { type Fate, type MongoWire, openMongoWire } from "../support/mongo-wire.ts";
import { type Thing, type ThingSchema, thing, thingKinds, things } from "./documents.world.ts";

const raised = (one: Thing): Thing => ({ ...one, n: one.n + 1 });
/** May be made once. */
const taken = (one: Thing) => (one.open ? { ...raised(one), open: undefined } : undefined);
const named = { named: true };

await describeMongo("documents on a bad wire", (mongo) => {
  let wire: MongoWire;
  let store: Documents<Thing, keyof ThingSchema["indexes"]>;
  let other: typeof store;
  const [kind] = thingKinds as [ThingSchema];

  beforeEach(async () => {
    const name = mongo.newName();
    const db = mongo.connect(name);
    await migrate(db, [mongoSchemaOf(things)]);
    wire = await openMongoWire(mongo.url);
    store = createMongoDocuments(mongo.connect(name, { url: wire.url }), kind);
    other = createMongoDocuments(db, kind);
    await other.insert(thing("a", { open: true, dueAt: 1 }));
  });
  afterEach(() => wire[Symbol.asyncDispose]());

  /** What becomes of the next such command, and what happens before that, or before the command after it. */
  function next(command: string, fate: Fate, meanwhile: () => Promise<unknown> = async () => {}) {
    let seen = 0;
    wire.rule = async (sent) => {
      if (sent[command] === kind.name && seen++ === 0) {
        if (fate !== "lost reply") await meanwhile();
        return fate;
      }
      if (seen === 1 && fate === "lost reply" && "find" in sent) {
        seen++;
        await meanwhile();
      }
      return "pass";
    };
  }

  test("an insert whose answer was lost is there, and says that something is", async () => {
    next("insert", "lost reply");
    expect(await store.insert(thing("b"))).toBe(false);
    expect(await other.find("b")).toEqual(thing("b"));
    next("insert", "lost request");
    expect(await store.insert(thing("c"))).toBe(true);
  });

  test("a named change knows its own, whatever others did since", async () => {
    next("update", "lost reply", () =>
      other.change("a", (one) => ({ ...raised(one), text: "theirs" })),
    );
    expect(await store.change("a", taken, named)).toMatchObject({ n: 1 });
    expect(await other.find("a")).toStrictEqual(thing("a", { n: 2, dueAt: 1, text: "theirs" }));
    expect(await other.change("a", taken, named)).toBeUndefined();
  });

  test("a named change that did not arrive is made, unless another was first", async () => {
    next("update", "lost request");
    expect(await store.change("a", raised, named)).toMatchObject({ n: 1 });
    next("update", "lost request", () => other.change("a", taken, named));
    expect(await store.change("a", taken, named)).toBeUndefined();
    expect(await other.find("a")).toMatchObject({ n: 2 });
  });

  test("a document that a named change made first is known again, and one of another is not", async () => {
    const first = { first: thing("b", { open: true }), ...named };
    next("insert", "lost reply", () => other.change("b", raised));
    expect(await store.change("b", taken, first)).toMatchObject({ n: 1 });
    expect(await other.find("b")).toStrictEqual(thing("b", { n: 2 }));
    next("insert", "lost request", () => other.insert(thing("c")));
    expect(await store.change("c", taken, { ...named, first: thing("c", { open: true }) })).toBe(
      undefined,
    );
    expect(await other.find("c")).toStrictEqual(thing("c"));
  });

  test("a change without a name is asked anew, of the document that has it", async () => {
    next("update", "lost reply");
    expect(await store.change("a", taken)).toBeUndefined();
    expect(await other.find("a")).toMatchObject({ n: 1 });
    next("update", "lost reply");
    expect(await store.change("a", (one) => ({ ...one, dueAt: 5 }))).toMatchObject({ dueAt: 5 });
  });

  test("a change that was overtaken is made of what it finds then", async () => {
    next("update", "pass", () => other.change("a", (one) => ({ ...raised(one), at: 8 })));
    expect(await store.change("a", raised)).toMatchObject({ n: 2, at: 8 });
    next("update", "pass", () => other.setSome("over", { upTo: 1 }, { dueAt: 7 }));
    expect(await store.change("a", raised)).toMatchObject({ n: 3, dueAt: 7 });
    next("delete", "pass", () => other.change("a", raised));
    const gone = await store.change("a", (one) => (one.n === 3 ? removed : undefined));
    expect(gone).toBeUndefined();
    expect(await other.find("a")).toMatchObject({ n: 4 });
  });

  test("what is set or removed without an answer is so, once", async () => {
    await other.insert(thing("b", { dueAt: 2 }));
    next("update", "lost reply");
    await store.setSome("over", { upTo: 1, limit: 1 }, { dueAt: 9 });
    expect(await other.seek("over", { upTo: 99 })).toMatchObject([
      { thingId: "b" },
      { thingId: "a", dueAt: 9 },
    ]);
    next("delete", "lost reply");
    await store.change("b", () => removed);
    next("delete", "lost reply");
    await store.removeSome("list", { of: ["me"] });
    expect(await other.seek("list", { of: ["me"] })).toEqual([]);
    next("delete", "lost reply");
    await store.remove("a");
  });
});
