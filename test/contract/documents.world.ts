import type { Component, DocumentsSchema } from "#kit/documents/schema.ts";

/** A document with a field of each sort. */
export interface Thing {
  thingId: string;
  ownerId: string;
  /** Rises with each step of these tests. */
  n: number;
  at: number;
  dueAt?: number | undefined;
  /** Too large for a float. */
  amount: bigint;
  text: string;
  open?: true | undefined;
  slot?: { key: string; print: string } | undefined;
  more?: { deep: (number | string)[] } | undefined;
}

const indexes = {
  list: { key: { ownerId: 1, at: 1, thingId: 1 } },
  due: { key: { ownerId: 1, dueAt: 1 }, where: { dueAt: "there" } },
  over: { key: { dueAt: 1 }, where: { dueAt: "there", text: "not empty" } },
  newest: { key: { ownerId: 1, at: -1 } },
  open: { key: { open: 1, dueAt: 1 }, where: { open: "there" } },
  mine: { key: { at: 1 }, where: { ownerId: { is: "me" } }, sqliteWhere: { dueAt: "there" } },
  slot: { key: { ownerId: 1, "slot.key": 1 }, unique: true, where: { "slot.key": "there" } },
} as const;

export type ThingSchema = DocumentsSchema<Thing, keyof typeof indexes>;

/** Kinds of things, one for each way in which MongoDB sees that a document has changed. */
export const thingKinds: readonly ThingSchema[] = [
  { name: "thing_by_version", compare: { version: "v" } },
  { name: "thing_by_field", compare: { fields: ["n", "open"] } },
].map((one) => ({
  ...one,
  id: "thingId",
  columns: {
    ...{ ownerId: "text", text: "text", "slot.key": "text", open: "flag", more: "json" },
    ...{ at: "integer", dueAt: "integer", amount: "bigint" },
  },
  indexes,
  changeName: "changed",
}));

/** The tables and collections of the things. */
export const things: Component = {
  name: "things",
  kinds: thingKinds,
  tables: thingKinds.map(
    ({
      name,
    }) => `CREATE TABLE ${name} (thing_id TEXT PRIMARY KEY, owner_id TEXT NOT NULL, text TEXT NOT NULL,
      slot_key TEXT, open INTEGER, more TEXT, at INTEGER NOT NULL, due_at INTEGER, amount INTEGER NOT NULL, doc TEXT NOT NULL) STRICT`,
  ),
};

export function thing(thingId: string, more: Partial<Thing> = {}): Thing {
  return {
    thingId,
    ownerId: "me",
    n: 0,
    at: 0,
    amount: 2n ** 60n + 1n,
    text: "é'\"\u{1f30a}",
    ...more,
  };
}
