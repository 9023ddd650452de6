// Keeps notices, and what each way has told, as documents in SQLite or MongoDB.

import { documentsIn, openDocuments } from "#kit/documents/open.ts";
import type { Component, DocumentsSchema } from "#kit/documents/schema.ts";
import type { Database } from "#kit/store/database.ts";
import { forgottenAfterMs, maxListed, overAfterMs } from "./limits.ts";
import { type Condition, type Notice, seenAgain, unseen } from "./notice.ts";
import { newWay, type Way, type WayName } from "./way.ts";

/**
 * The notices of all processes, and what each way has told. Each method is atomic and durable when it resolves, and may be repeated. All
 * refuse with SERVICE_UNAVAILABLE where the store is away.
 */
export interface NoticeStore {
  /** Makes tables, collections and indexes. To be called once, before all else. */
  open(): Promise<void>;
  /** A process sees a condition at `now`. */
  see(condition: Condition, now: number): Promise<void>;
  /** The notices that last, those that began first come first. At most {@link maxListed}. */
  lasting(now: number): Promise<Notice[]>;
  /** Forgets notices that have been over for a day. */
  forget(now: number): Promise<void>;
  way(name: WayName): Promise<Way>;
  /** Makes a step of a way. Undefined where the step wants no change. */
  stepWay(name: WayName, step: (way: Way) => Way | undefined): Promise<Way | undefined>;
}

const indexes = { seen: { key: { seenAt: 1 } } } as const;

const noticeSchema: DocumentsSchema<Notice, keyof typeof indexes> = {
  name: "operator_notice",
  id: "noticeId",
  columns: { seenAt: "integer" },
  indexes,
  compare: { fields: ["seenAt"] },
};

const waySchema: DocumentsSchema<Way, never> = {
  name: "operator_alert_way",
  id: "way",
  columns: {},
  indexes: {},
  compare: { version: "v" },
};

const tables = [
  `CREATE TABLE operator_notice (
     notice_id TEXT PRIMARY KEY,
     seen_at INTEGER NOT NULL,
     doc TEXT NOT NULL
   ) STRICT, WITHOUT ROWID;
   CREATE TABLE operator_alert_way (
     way TEXT PRIMARY KEY,
     doc TEXT NOT NULL
   ) STRICT, WITHOUT ROWID;`,
];

/** The tables, collections and indexes of notices. */
export const noticesComponent: Component = {
  name: "operator_notices",
  kinds: [noticeSchema, waySchema],
  tables,
};

/** The store of notices in a process's database. */
export function createNoticeStore(database: Database): NoticeStore {
  const notices = documentsIn(database, noticeSchema);
  const ways = documentsIn(database, waySchema);
  return {
    open: () => openDocuments(database, noticesComponent),
    async see(condition, now) {
      const first = unseen(condition);
      await notices.change(first.noticeId, (notice) => seenAgain(notice, now), { first });
    },
    async lasting(now) {
      const found = await notices.seek("seen", {
        behind: [now - overAfterMs - 1],
        limit: maxListed,
      });
      return found.sort((one, other) => one.beganAt - other.beganAt);
    },
    async forget(now) {
      await notices.removeSome("seen", { upTo: now - forgottenAfterMs, limit: maxListed });
    },
    way: async (name) => (await ways.find(name)) ?? newWay(name),
    stepWay: (name, step) => ways.change(name, step, { first: newWay(name) }),
  };
}
