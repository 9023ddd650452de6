import { afterEach, beforeEach, expect, test } from "vitest";
import { migrate } from "#kit/store/mongo/migrate.ts";
import type { FileStore } from "../../services/media/files/store.ts";
import { createMongoFileStore } from "../../services/media/files/store-mongo.ts";
import { filesCollection, filesMongoSchema } from "../../services/media/files/store-mongo-docs.ts";
import { describeMongo } from "../support/mongo.ts";
import { type Fate, type MongoWire, openMongoWire } from "../support/mongo-wire.ts";
import { accountId, asFile, newFile, ready, t0 } from "./files.suite.ts";

const pin = { jobId: "job_1", index: 0 };
const keyed = { keyId: "key_1", key: "k", fingerprint: "print" };

await describeMongo("account files on a bad wire", (mongo) => {
  let wire: MongoWire;
  let store: FileStore;
  let other: FileStore;

  beforeEach(async () => {
    const name = mongo.newName();
    const db = mongo.connect(name);
    await migrate(db, [filesMongoSchema]);
    other = createMongoFileStore(db);
    wire = await openMongoWire(mongo.url);
    store = createMongoFileStore(mongo.connect(name, { url: wire.url }));
  });
  afterEach(() => wire[Symbol.asyncDispose]());

  /** Sets the treatment of the next such command. `meanwhile` runs before it. */
  function next(command: string, fate: Fate, meanwhile: () => Promise<unknown> = async () => {}) {
    let isOver = false;
    wire.rule = async (sent) => {
      if (isOver || sent[command] !== filesCollection) return "pass";
      isOver = true;
      await meanwhile();
      return fate;
    };
  }

  test("a beginning without an answer has begun, and holds its slot", async () => {
    next("insert", "lost reply");
    expect(await store.begin(newFile("a", { idempotency: keyed }))).toEqual({ kind: "begun" });
    expect(await other.begin(newFile("b", { idempotency: keyed }))).toMatchObject({
      kind: "taken",
      file: { fileId: "file_a" },
      fingerprint: "print",
    });
  });

  test("a beginning that another overtook is not there", async () => {
    const mine = newFile("a", { origin: "import", sha256: "same" });
    const theirs = newFile("b", { origin: "import", sha256: "same" });
    next("insert", "lost request", () => other.begin(theirs));
    expect(await store.begin(mine)).toMatchObject({ kind: "taken", file: { fileId: "file_b" } });
    expect(await other.find(accountId, "file_a")).toBeUndefined();
  });

  test("an id that is free again begins anew without an answer", async () => {
    const old = newFile("a");
    await other.begin(old);
    await other.drop(old, t0);
    await other.erase(old, t0 + 10);
    const again = { ...old, storageId: "stored_new" };
    next("update", "lost reply");
    expect(await store.begin(again)).toEqual({ kind: "begun" });
    expect(await other.find(accountId, "file_a")).toEqual(asFile(again, "storing"));
  });

  test("who published, removed and dropped knows that he did", async () => {
    const [kept, given] = [newFile("a", { idempotency: keyed }), newFile("b")];
    await other.begin(kept);
    next("update", "lost reply");
    expect(await store.publish(kept)).toBe(true);
    next("findAndModify", "lost reply");
    expect(await store.remove(accountId, "file_a", t0)).toEqual(asFile(kept, "deleted"));
    expect(await other.remove(accountId, "file_a", t0)).toBeUndefined();
    await other.begin(given);
    next("findAndModify", "lost reply");
    expect(await store.drop(given, t0)).toBe(true);
    expect(await other.drop(given, t0)).toBe(false);
  });

  test("it knows that also where another process has gone on with the file", async () => {
    const file = newFile("a");
    await ready(other, file);
    let looks = 0;
    wire.rule = async (sent) => {
      if (sent.findAndModify !== filesCollection) return "pass";
      if (++looks === 1) return "lost reply";
      await other.erase(file, t0 + 10);
      return "pass";
    };
    // The file's name is deleted with its bytes.
    const deleted = { ...asFile(file, "deleted"), fileName: "" };
    expect(await store.remove(accountId, "file_a", t0)).toEqual(deleted);
    expect((await other.find(accountId, "file_a"))?.state).toBe("gone");
  });

  test("who was beaten to it while his own was under way knows that too", async () => {
    const file = newFile("a");
    await ready(other, file);
    next("findAndModify", "lost request", () => other.remove(accountId, "file_a", t0));
    expect(await store.remove(accountId, "file_a", t0)).toBeUndefined();
  });

  test("pins are set once and taken away, answers or none", async () => {
    const [a, b] = [newFile("a"), newFile("b")];
    await ready(other, a);
    await ready(other, b);
    next("findAndModify", "lost reply");
    expect(await store.pin(accountId, "file_a", pin)).toEqual(asFile(a, "ready"));
    next("update", "lost reply");
    expect(await store.pin(accountId, "file_b", pin)).toEqual(asFile(b, "ready"));
    expect(await other.pinned("job_1")).toEqual(new Map([[0, asFile(b, "ready")]]));
    expect(await other.pinsOf("file_a")).toEqual([]);
    await other.remove(accountId, "file_b", t0);
    await other.defer(b, t0 + 1_000);
    next("update", "lost reply");
    await store.unpin("job_1", t0 + 5);
    expect(await other.pinsOf("file_b")).toEqual([]);
    expect(await other.due(t0 + 5, 10)).toEqual([asFile(b, "deleted")]);
  });

  test("a file that is removed under a pin's way is either had or not there", async () => {
    const file = newFile("a");
    await ready(other, file);
    next("findAndModify", "pass", () => other.remove(accountId, "file_a", t0));
    expect(await store.pin(accountId, "file_a", pin)).toBeUndefined();
    expect(await other.pinsOf("file_a")).toEqual([]);
  });

  test.each([
    ["before the first", 1],
    ["between the two", 2],
  ])("a pin that is let go of while its file is removed, %s of its steps", async (_, at) => {
    const file = newFile("a");
    await ready(other, file);
    await other.pin(accountId, "file_a", pin);
    let updates = 0;
    wire.rule = async (sent): Promise<Fate> => {
      if (sent.update !== filesCollection || ++updates !== at) return "pass";
      await other.remove(accountId, "file_a", t0);
      return "pass";
    };
    await store.unpin("job_1", t0 + 5);
    expect(updates).toBe(2);
    expect(await other.pinsOf("file_a")).toEqual([]);
    expect(await other.due(t0 + 5, 10)).toEqual([asFile(file, "deleted")]);
  });
});
