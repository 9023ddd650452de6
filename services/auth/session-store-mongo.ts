import type { MongoDatabase } from "#kit/store/mongo/connect.ts";
import { isDuplicate } from "#kit/store/mongo/errors.ts";
import { indexStep, type MongoSchema, migrate } from "#kit/store/mongo/migrate.ts";
import type { Session, SessionIdentity } from "./session.ts";
import { holderOf, type SessionStore } from "./session-store.ts";
import { hashText } from "./store-mongo-docs.ts";

const collection = "auth_session";

interface SessionDocument {
  /** SHA-256 of the session's id, hexadecimal. */
  _id: string;
  holder: string;
  keyId?: string;
  /** SHA-256 of the secret, hexadecimal. */
  secret: string;
  identity?: SessionIdentity;
  createdAtMs: number;
  seenAtMs: number;
  endsAtMs: number;
}

const indexes: MongoSchema["indexes"] = {
  [collection]: [
    { name: "holder", key: { holder: 1, createdAtMs: -1 } },
    { name: "end", key: { endsAtMs: 1 } },
  ],
};

/** What auth keeps of sessions in MongoDB. */
export const sessionMongoSchema: MongoSchema = {
  component: "session",
  indexes,
  steps: [indexStep(indexes)],
};

/** Sessions in MongoDB, one document each. */
export function createMongoSessionStore(db: MongoDatabase): SessionStore {
  const sessions = db.collection<SessionDocument>(collection);
  return {
    open: () => migrate(db, [sessionMongoSchema]),
    async create(session, most) {
      const doc = documentOf(session);
      await db.attempt(async (unsure) => {
        await sessions.insertOne(doc).catch((error) => {
          // Ids are drawn at random: what has this one is what an attempt without an answer wrote.
          if (!(unsure && isDuplicate(error))) throw error;
        });
      });
      await db.attempt(() => sessions.deleteMany({ endsAtMs: { $lte: session.createdAtMs } }));
      const tooMany = await db.attempt(() =>
        sessions
          .find({ holder: doc.holder }, { projection: { _id: 1 } })
          .sort({ createdAtMs: -1 })
          .skip(most)
          .toArray(),
      );
      if (tooMany.length === 0) return;
      const ids = tooMany.map(({ _id }) => _id);
      await db.attempt(() => sessions.deleteMany({ _id: { $in: ids } }));
    },
    async find(sha256) {
      const doc = await db.attempt(() => sessions.findOne({ _id: hashText(sha256) }));
      return doc ? sessionOf(doc) : undefined;
    },
    async touch(sha256, seenAtMs) {
      await db.attempt(() => sessions.updateOne({ _id: hashText(sha256) }, { $max: { seenAtMs } }));
    },
    async end(sha256) {
      await db.attempt(() => sessions.deleteOne({ _id: hashText(sha256) }));
    },
  };
}

function documentOf(session: Session): SessionDocument {
  const { keyId, identity, createdAtMs, seenAtMs, endsAtMs } = session;
  return {
    _id: hashText(session.sha256),
    holder: holderOf(session),
    ...(keyId === undefined ? {} : { keyId }),
    secret: hashText(session.secretSha256),
    ...(identity ? { identity: { ...identity } } : {}),
    createdAtMs,
    seenAtMs,
    endsAtMs,
  };
}

function sessionOf(doc: SessionDocument): Session {
  const { keyId, identity, createdAtMs, seenAtMs, endsAtMs } = doc;
  return {
    sha256: Buffer.from(doc._id, "hex"),
    ...(keyId === undefined ? {} : { keyId }),
    secretSha256: Buffer.from(doc.secret, "hex"),
    ...(identity ? { identity } : {}),
    createdAtMs,
    seenAtMs,
    endsAtMs,
  };
}
