import { describe, expect, test } from "vitest";
import type { AccountFile } from "../../services/media/files/file.ts";
import type { FileStore, NewFile } from "../../services/media/files/store.ts";

export const accountId = "acct_a";
export const t0 = Date.UTC(2026, 0, 15, 12);
const page = { after: undefined, limit: 100, purpose: undefined, ascending: false };
/** Rounds in which two replicas want the same at once. Within one replica, the service asks the store once. */
const rounds = 10;

/** The rules for every store of account files. `open` gives two clients of one empty store. */
export function fileStoreContract(open: () => Promise<[FileStore, FileStore]>): void {
  describe("a file's life", () => {
    test("it is seen from publishing to deletion, as it was written down", async () => {
      const [store, other] = await open();
      const file = newFile("a");
      expect(await store.begin(file)).toEqual({ kind: "begun" });
      expect(await store.find(accountId, "file_a")).toEqual(asFile(file, "storing"));
      expect(await store.list(accountId, page)).toEqual([]);
      expect(await other.publish(file)).toBe(true);
      expect(await store.list(accountId, page)).toEqual([asFile(file, "ready")]);
      expect(await store.remove(accountId, "file_a", t0)).toEqual(asFile(file, "deleted"));
      expect(await other.list(accountId, page)).toEqual([]);
      await store.erase(file, t0 + 10);
      expect(await store.find(accountId, "file_a")).toEqual({
        ...asFile(file, "gone"),
        fileName: "",
      });
      expect(await store.forget(t0 + 9, 10)).toBe(0);
      expect(await store.forget(t0 + 10, 10)).toBe(1);
      expect(await store.find(accountId, "file_a")).toBeUndefined();
    });

    test("every step may be repeated", async () => {
      const [store] = await open();
      const file = newFile("a");
      await store.begin(file);
      expect(await store.begin(file)).toEqual({ kind: "begun" });
      await store.publish(file);
      expect(await store.publish(file)).toBe(true);
      expect(await store.begin(file)).toEqual({ kind: "begun" });
      await store.remove(accountId, "file_a", t0);
      expect(await store.remove(accountId, "file_a", t0)).toBeUndefined();
      await store.erase(file, t0);
      await store.erase(file, t0);
      expect((await store.find(accountId, "file_a"))?.state).toBe("gone");
    });

    test("an attempt that was given up cannot be published, a published one not given up", async () => {
      const [store, other] = await open();
      const [given, kept] = [newFile("a"), newFile("b")];
      await store.begin(given);
      expect(await other.drop(given, t0)).toBe(true);
      expect(await store.drop(given, t0)).toBe(false);
      expect(await store.publish(given)).toBe(false);
      await store.begin(kept);
      await store.publish(kept);
      expect(await other.drop(kept, t0)).toBe(false);
      expect((await store.find(accountId, "file_b"))?.state).toBe("ready");
    });

    test("of giving up and publishing at once, exactly one happens", async () => {
      const [store, other] = await open();
      for (let round = 0; round < 10; round++) {
        const file = newFile(`r${round}`);
        await store.begin(file);
        const [published, dropped] = await Promise.all([store.publish(file), other.drop(file, t0)]);
        expect(published).not.toBe(dropped);
        const { state } = (await store.find(accountId, file.fileId)) ?? {};
        expect(state).toBe(published ? "ready" : "deleted");
      }
    });

    test("another account's file is as none", async () => {
      const [store] = await open();
      await ready(store, newFile("a"));
      expect(await store.find("acct_b", "file_a")).toBeUndefined();
      expect(await store.remove("acct_b", "file_a", t0)).toBeUndefined();
      expect(await store.pin("acct_b", "file_a", { jobId: "job_1", index: 0 })).toBeUndefined();
      expect(await store.list("acct_b", page)).toEqual([]);
      expect(await store.list("acct_b", { ...page, after: "file_a" })).toBeUndefined();
    });

    test("a steps of an older attempt do not touch a newer one", async () => {
      const [store] = await open();
      const old = newFile("a");
      await store.begin(old);
      await store.drop(old, t0);
      expect(await store.begin({ ...old, storageId: "stored_new" })).toMatchObject({
        kind: "taken",
        file: { state: "deleted" },
      });
      await store.erase(old, t0 + 10);
      const again = { ...old, storageId: "stored_new" };
      expect(await store.begin(again)).toEqual({ kind: "begun" });
      expect(await store.publish(old)).toBe(false);
      expect(await store.drop(old, t0)).toBe(false);
      await store.erase(old, t0);
      await store.defer(old, t0);
      expect(await store.find(accountId, "file_a")).toEqual(asFile(again, "storing"));
    });
  });

  describe("idempotency slots", () => {
    const slot = { keyId: "key_1", key: "k" };
    const keyed = (name: string, more: Partial<NewFile> = {}) =>
      newFile(name, { idempotency: { ...slot, fingerprint: `print-${name}` }, ...more });

    test("a slot holds one upload, from its beginning to its end", async () => {
      const [store, other] = await open();
      expect(await store.findBySlot(slot)).toBeUndefined();
      const first = keyed("a");
      await store.begin(first);
      expect(await other.begin(keyed("b"))).toEqual({
        kind: "taken",
        file: asFile(first, "storing"),
        fingerprint: "print-a",
      });
      expect(await store.find(accountId, "file_b")).toBeUndefined();
      await store.publish(first);
      expect(await other.findBySlot(slot)).toEqual({
        file: asFile(first, "ready"),
        fingerprint: "print-a",
      });
      const elsewhere = keyed("c", {
        idempotency: { keyId: "key_2", key: "k", fingerprint: "print-c" },
      });
      expect(await store.begin(elsewhere)).toEqual({ kind: "begun" });
    });

    test.each(["drop", "remove"] as const)("%s frees it", async (step) => {
      const [store] = await open();
      const first = keyed("a");
      await store.begin(first);
      if (step === "drop") await store.drop(first, t0);
      else {
        await store.publish(first);
        await store.remove(accountId, "file_a", t0);
      }
      expect(await store.findBySlot(slot)).toBeUndefined();
      expect(await store.begin(keyed("b"))).toEqual({ kind: "begun" });
    });

    test("of two replicas at once, one begins, again and again", async () => {
      const [store, other] = await open();
      for (let round = 0; round < rounds; round++) {
        const idempotency = { ...slot, key: `k${round}`, fingerprint: "print" };
        const begun = await Promise.all([
          store.begin(keyed(`a${round}`, { idempotency })),
          other.begin(keyed(`b${round}`, { idempotency })),
        ]);
        expect(begun.map(({ kind }) => kind).sort()).toEqual(["begun", "taken"]);
      }
    });
  });

  describe("imports", () => {
    const imported = (name: string, more: Partial<NewFile> = {}) =>
      newFile(name, { origin: "import", sha256: "same", ...more });

    test("the same bytes are there once an account", async () => {
      const [store, other] = await open();
      const first = imported("a");
      expect(await store.begin(first)).toEqual({ kind: "begun" });
      const taken = { kind: "taken", fingerprint: undefined };
      expect(await other.begin(imported("b"))).toEqual({
        ...taken,
        file: asFile(first, "storing"),
      });
      await store.publish(first);
      expect(await other.begin(imported("b"))).toEqual({ ...taken, file: asFile(first, "ready") });
      expect(await store.begin(imported("c", { accountId: "acct_b" }))).toEqual({ kind: "begun" });
      await store.remove(accountId, "file_a", t0);
      expect(await other.begin(imported("b"))).toEqual({ kind: "begun" });
    });

    test("an upload of the same bytes serves an import, but two uploads are two", async () => {
      const [store] = await open();
      await ready(store, newFile("a", { sha256: "same" }));
      expect(await store.begin(newFile("b", { sha256: "same" }))).toEqual({ kind: "begun" });
      expect(await store.begin(imported("c"))).toMatchObject({ file: { fileId: "file_a" } });
    });

    test("of two replicas at once, one begins, again and again", async () => {
      const [store, other] = await open();
      for (let round = 0; round < rounds; round++) {
        const sha256 = `same${round}`;
        const begun = await Promise.all([
          store.begin(imported(`a${round}`, { sha256 })),
          other.begin(imported(`b${round}`, { sha256 })),
        ]);
        expect(begun.map(({ kind }) => kind).sort()).toEqual(["begun", "taken"]);
      }
    });
  });

  describe("pins", () => {
    const pin = { jobId: "job_1", index: 0 };

    test("only what is ready can be pinned; what is pinned is had though it is deleted", async () => {
      const [store, other] = await open();
      const file = newFile("a");
      await store.begin(file);
      expect(await store.pin(accountId, "file_a", pin)).toBeUndefined();
      await store.publish(file);
      expect(await store.pin(accountId, "file_a", pin)).toEqual(asFile(file, "ready"));
      await other.remove(accountId, "file_a", t0);
      expect(await store.pin(accountId, "file_a", pin)).toEqual(asFile(file, "deleted"));
      expect(await store.pin(accountId, "file_a", { jobId: "job_2", index: 0 })).toBeUndefined();
      expect(await other.pinned("job_1")).toEqual(new Map([[0, asFile(file, "deleted")]]));
      expect(await other.pinsOf("file_a")).toEqual(["job_1"]);
    });

    test("a job may use one file twice, and lets go of all at once", async () => {
      const [store] = await open();
      const [a, b] = [newFile("a"), newFile("b")];
      await ready(store, a);
      await ready(store, b);
      await store.pin(accountId, "file_a", pin);
      await store.pin(accountId, "file_a", { jobId: "job_1", index: 1 });
      await store.pin(accountId, "file_b", { jobId: "job_1", index: 2 });
      await store.pin(accountId, "file_b", { jobId: "job_2", index: 0 });
      expect([...(await store.pinned("job_1")).keys()].sort()).toEqual([0, 1, 2]);
      expect(await store.pinsOf("file_a")).toEqual(["job_1"]);
      expect((await store.pinsOf("file_b")).sort()).toEqual(["job_1", "job_2"]);
      await store.unpin("job_1", t0);
      await store.unpin("job_1", t0);
      expect(await store.pinned("job_1")).toEqual(new Map());
      expect(await store.pinsOf("file_a")).toEqual([]);
      expect(await store.pinsOf("file_b")).toEqual(["job_2"]);
    });

    test("a file begins pinned by its job, which sees it once it is ready", async () => {
      const [store] = await open();
      const file = newFile("a", { origin: "import", pin });
      await store.begin(file);
      expect(await store.pinned("job_1")).toEqual(new Map());
      await store.publish(file);
      expect(await store.pinned("job_1")).toEqual(new Map([[0, asFile(file, "ready")]]));
      const given = newFile("b", { origin: "import", pin: { jobId: "job_2", index: 0 } });
      await store.begin(given);
      await store.drop(given, t0);
      expect(await store.pinsOf("file_b")).toEqual([]);
    });

    test("unpinning makes a deleted file due", async () => {
      const [store] = await open();
      const file = newFile("a");
      await ready(store, file);
      await store.pin(accountId, "file_a", pin);
      await store.remove(accountId, "file_a", t0);
      await store.defer(file, t0 + 1_000);
      expect(await store.due(t0 + 999, 10)).toEqual([]);
      await store.unpin("job_1", t0 + 5);
      expect(await store.due(t0 + 5, 10)).toEqual([asFile(file, "deleted")]);
    });
  });

  describe("what is due, and what is referenced", () => {
    test("attempts past their lease and deleted files, the longest due first", async () => {
      const [store] = await open();
      const storing = newFile("a", { leaseUntil: t0 + 20 });
      const deleted = newFile("b");
      await store.begin(storing);
      await ready(store, deleted);
      await ready(store, newFile("c"));
      await store.remove(accountId, "file_b", t0 + 10);
      const ids = async (now: number, limit = 10) =>
        (await store.due(now, limit)).map(({ fileId }) => fileId);
      expect(await ids(t0 + 9)).toEqual([]);
      expect(await ids(t0 + 10)).toEqual(["file_b"]);
      expect(await ids(t0 + 20)).toEqual(["file_b", "file_a"]);
      expect(await ids(t0 + 20, 1)).toEqual(["file_b"]);
      await store.erase(deleted, t0 + 10);
      expect(await ids(t0 + 10)).toEqual([]);
    });

    test("bytes are referenced from before they are stored until they are gone", async () => {
      const [store] = await open();
      const file = newFile("a");
      const is = () => store.isReferenced(file.storageId);
      expect(await is()).toBe(false);
      await store.begin(file);
      expect(await is()).toBe(true);
      await store.publish(file);
      expect(await is()).toBe(true);
      await store.remove(accountId, "file_a", t0);
      expect(await is()).toBe(true);
      await store.erase(file, t0);
      expect(await is()).toBe(false);
    });
  });

  describe("listing", () => {
    const names = (files: AccountFile[] | undefined) => files?.map(({ fileId }) => fileId.slice(5));

    test("by time, then id, both ways, page by page, by purpose", async () => {
      const [store] = await open();
      const ages = { d: 1, a: 2, c: 2, b: 2, e: 3 };
      for (const [name, age] of Object.entries(ages)) {
        const purpose = age === 2 ? "vision" : "other";
        await ready(store, newFile(name, { createdAt: t0 + age, purpose }));
      }
      const list = async (more: Partial<typeof page> & object) =>
        names(await store.list(accountId, { ...page, ...more }));
      expect(await list({})).toEqual(["e", "c", "b", "a", "d"]);
      expect(await list({ ascending: true })).toEqual(["d", "a", "b", "c", "e"]);
      const first = await store.list(accountId, { ...page, limit: 2 });
      expect(names(first)).toEqual(["e", "c"]);
      const second = { ...page, after: first?.at(-1)?.fileId, limit: 2 };
      expect(names(await store.list(accountId, second))).toEqual(["b", "a"]);
      const vision = { ...page, purpose: "vision", after: "file_c" };
      expect(names(await store.list(accountId, vision))).toEqual(["b", "a"]);
      expect(names(await store.list(accountId, { ...page, after: "file_none" }))).toBeUndefined();
    });

    test("it goes on behind a file that was deleted meanwhile", async () => {
      const [store] = await open();
      for (const [at, name] of ["a", "b", "c"].entries()) {
        await ready(store, newFile(name, { createdAt: t0 + at }));
      }
      await store.remove(accountId, "file_b", t0);
      expect(names(await store.list(accountId, { ...page, after: "file_b" }))).toEqual(["a"]);
      await store.erase(newFile("b"), t0 + 10);
      expect(names(await store.list(accountId, { ...page, after: "file_b" }))).toEqual(["a"]);
    });
  });
}

export async function ready(store: FileStore, file: NewFile): Promise<void> {
  expect(await store.begin(file)).toEqual({ kind: "begun" });
  expect(await store.publish(file)).toBe(true);
}

export function newFile(name: string, more: Partial<NewFile> = {}): NewFile {
  return {
    fileId: `file_${name}`,
    accountId,
    origin: "upload",
    storageId: `stored_${name}`,
    fileName: `${name}.png`,
    purpose: "vision",
    mimeType: "image/png",
    sizeBytes: 1_000,
    sha256: `digest-${name}`,
    width: 12,
    height: 34,
    createdAt: t0,
    leaseUntil: t0 + 90_000,
    ...more,
  };
}

export function asFile(file: NewFile, state: AccountFile["state"]): AccountFile {
  const { leaseUntil: _lease, idempotency: _slot, pin: _pin, ...facts } = file;
  return { ...facts, state };
}
