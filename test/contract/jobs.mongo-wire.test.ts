import type { Document } from "mongodb";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import type { Job } from "../../services/media/jobs/job.ts";
import type { JobCommand } from "../../services/media/jobs/lifecycle.ts";
import type { JobStore } from "../../services/media/jobs/store.ts";
import { createMongoJobStore } from "../../services/media/jobs/store-mongo.ts";
import { jobCollections } from "../../services/media/jobs/store-mongo-docs.ts";
import { changesKept } from "../../services/media/limits.ts";
import { describeMongo } from "../support/mongo.ts";
import { type Fate, type MongoWire, openMongoWire } from "../support/mongo-wire.ts";
import { until } from "../support/until.ts";
import { failure, jobOf, must, now, query } from "./jobs.shapes.ts";

const slot = { scope: "key_a/image", key: "k" };
const claim: JobCommand = { kind: "claim", owner: "w", now };
const win: JobCommand = { kind: "win", fence: 1, outputs: [], now };
const lose: JobCommand = { kind: "lose", fence: 1, failure, now };
const expiresAt = now + 5;
const complete: JobCommand = { kind: "complete", charged: 7n, expiresAt, now };
const cancel: JobCommand = { kind: "cancel", now };
const remove: JobCommand = { kind: "delete", now };

/** Every command, after those that lead to a state in which it is allowed. */
const lives: JobCommand[][] = [
  [{ kind: "beat", now }],
  [{ kind: "attach", pinned: [], now }],
  [{ kind: "accept", now }],
  [{ kind: "reject", failure, now }],
  [
    { kind: "accept", now },
    { kind: "published", now },
  ],
  [{ kind: "accept", now }, claim],
  [{ kind: "accept", now }, claim, { kind: "heartbeat", fence: 1, now: now + 1 }],
  [{ kind: "accept", now }, claim, { kind: "resumable", fence: 1, resumeId: "r" }],
  [{ kind: "accept", now }, claim, { kind: "progress", fence: 1, percent: 9 }],
  [{ kind: "accept", now }, claim, { kind: "hand-back", fence: 1, now }],
  [
    { kind: "accept", now },
    claim,
    { kind: "set-aside", fence: 1, until: now + 9, nextUpstream: true, sent: false, now },
  ],
  [{ kind: "accept", now }, claim, win],
  [{ kind: "accept", now }, claim, lose],
  [
    { kind: "accept", now },
    { kind: "expire", now: now + 1e12 },
  ],
  [{ kind: "accept", now }, claim, win, complete],
  [{ kind: "accept", now }, claim, lose, { kind: "fail", charged: 0n, expiresAt, now }],
  [{ kind: "accept", now }, claim, win, complete, { kind: "unpinned" }],
  [{ kind: "accept", now }, cancel],
  [{ kind: "accept", now }, claim, cancel],
  [{ kind: "accept", now }, claim, win, complete, remove],
  [{ kind: "accept", now }, cancel, { kind: "fail", charged: 0n, expiresAt, now }, remove],
  [{ kind: "accept", now }, claim, win, complete, remove, { kind: "erased" }],
  [{ kind: "defer", until: now + 9 }],
];
const fates: Fate[] = ["lost reply", "lost request"];

await describeMongo("jobs on a bad wire", (mongo) => {
  let database: string;
  let wire: MongoWire;
  let store: JobStore;
  let other: JobStore;
  let lost: Document | undefined;

  beforeEach(async () => {
    database = mongo.newName();
    other = createMongoJobStore(mongo.connect(database));
    await other.open();
    wire = await openMongoWire(mongo.url);
    store = createMongoJobStore(mongo.connect(database, { url: wire.url }));
    lost = undefined;
  });
  afterEach(() => wire[Symbol.asyncDispose]());

  test.each(lives.map((life) => [life.at(-1)?.kind ?? "", life] as const))(
    "%s: made once, and told",
    async (_, life) => {
      const [before, command] = [life.slice(0, -1), life.at(-1) as JobCommand];
      for (const fate of fates) {
        const jobId = fate.replace(" ", "_");
        await other.insert(jobOf(jobId, { slot: fate, upstreams: ["a", "b"] }));
        for (const one of before) await must(other, jobId, one);
        const from = await other.find(jobId);
        loseOnce("update", fate);
        const next = await store.apply(jobId, command);
        expect(lost).toBeDefined();
        expect(await other.find(jobId)).toEqual(next);
        expect(next?.events.length).toBeLessThanOrEqual((from?.events.length ?? 0) + 1);
        const once = { published: "publications", claim: "fence" } as const;
        for (const [kind, count] of Object.entries(once)) {
          expect(next?.[count]).toBe((from?.[count] ?? 0) + Number(command.kind === kind));
        }
        expect(await version(jobId)).toBe(before.length + 2);
        // The lost command arrives after all, and is too late.
        await mongo.raw(database).command(resent(lost));
        expect(await other.find(jobId)).toEqual(next);
      }
    },
  );

  test("who was beaten to it while his own was under way knows that", async () => {
    await other.insert(jobOf("job_a"));
    await must(other, "job_a", { kind: "accept", now }, claim);
    loseOnce("update", "lost request", () => other.apply("job_a", lose));
    expect(await store.apply("job_a", win)).toBeUndefined();
    expect(await read()).toMatchObject({ state: "failing", fence: 1 });
  });

  test("who was first and then overtaken knows that he was first", async () => {
    await other.insert(jobOf("job_a"));
    await must(other, "job_a", { kind: "accept", now }, claim);
    let isFirst = true;
    wire.rule = async (command) => {
      if (command.find && lost && isFirst) {
        isFirst = false;
        await other.apply("job_a", complete);
      }
      return lostOnce("update", "lost reply", command);
    };
    expect(await store.apply("job_a", win)).toMatchObject({ state: "settling" });
    expect(await read()).toMatchObject({ state: "completed", charged: 7n });
  });

  test("after so many changes of others the answer is not known, and the caller is told that", async () => {
    await other.insert(jobOf("job_a"));
    wire.rule = async (command) => {
      if (command.find && lost) {
        for (let i = 0; i < changesKept; i++)
          await other.apply("job_a", { kind: "defer", until: now });
      }
      return lostOnce("update", "lost reply", command);
    };
    await expect(store.apply("job_a", { kind: "accept", now })).rejects.toMatchObject({
      reason: ErrorReason.SERVICE_UNAVAILABLE,
    });
  });

  describe("an insert", () => {
    test.each(fates)("(%s) is made once, and has its slot", async (fate) => {
      loseOnce("insert", fate);
      expect(await store.insert(jobOf("job_a", { slot: "k" }))).toBeUndefined();
      expect(lost).toBeDefined();
      expect(await other.findBySlot(slot)).toMatchObject({ jobId: "job_a" });
      expect(await other.insert(jobOf("job_b", { slot: "k" }))).toMatchObject({ jobId: "job_a" });
    });

    test("that another's was before finds that one", async () => {
      loseOnce("insert", "lost request", () => other.insert(jobOf("job_b", { slot: "k" })));
      expect(await store.insert(jobOf("job_a", { slot: "k" }))).toMatchObject({ jobId: "job_b" });
      loseOnce("insert", "lost request", () => other.insert(jobOf("job_c")));
      expect(await store.insert(jobOf("job_c"))).toMatchObject({ jobId: "job_c" });
    });

    test("whose caller leaves while another one of its slot is under way is not made, and holds up none behind it", async () => {
      const held = Promise.withResolvers<Fate>();
      let inserts = 0;
      wire.rule = (command) => {
        if (command.insert !== jobCollections.jobs) return "pass";
        return inserts++ === 0 ? held.promise : "pass";
      };
      const leave = new AbortController();
      const insert = (id: string, signal?: AbortSignal) =>
        store.insert(jobOf(id, { slot: "k" }), signal);
      const first = insert("job_a");
      await until("its insert", () => inserts === 1);
      const left = insert("job_b", leave.signal);
      const behind = insert("job_c");
      leave.abort(new Error("the caller has left"));
      await expect(left).rejects.toThrow("the caller has left");
      held.resolve("pass");
      expect(await first).toBeUndefined();
      expect(await behind).toMatchObject({ jobId: "job_a" });
      expect(inserts).toBe(2);
    });

    test("knows itself though its job was driven on, and refused, meanwhile", async () => {
      wire.rule = async (command) => {
        const again = command.insert && lost;
        if (again) await other.apply("job_a", { kind: "reject", failure, now });
        return lostOnce("insert", "lost reply", command);
      };
      expect(await store.insert(jobOf("job_a", { slot: "k" }))).toBeUndefined();
      expect(await read()).toMatchObject({ state: "rejected" });
      expect(await other.insert(jobOf("job_b", { slot: "k" }))).toBeUndefined();
    });
  });

  describe("a claim", () => {
    test.each(fates)("(%s) takes one job, one attempt, and one place", async (fate) => {
      for (const jobId of ["job_a", "job_b"]) {
        await other.insert(jobOf(jobId));
        await must(other, jobId, { kind: "accept", now });
      }
      const modelLimits = new Map([["m", 1]]);
      loseOnce("update", fate);
      const job = await store.claim(query({ modelLimits }));
      expect(job).toMatchObject({ jobId: "job_a", fence: 1, attempts: 1 });
      expect(await read()).toEqual(job);
      expect(await other.claim(query({ modelLimits }))).toBeUndefined();
      await must(other, "job_a", win);
      expect(await other.claim(query({ modelLimits }))).toMatchObject({ jobId: "job_b" });
    });

    test("of a place that another has taken takes none, until that is free", async () => {
      for (const name of ["a", "b"]) {
        await other.insert(jobOf(`job_${name}`, { upstreams: [name] }));
        await must(other, `job_${name}`, { kind: "accept", now });
      }
      const modelLimits = new Map([["m", 1]]);
      // Both see the free place, and the other client is faster.
      let isFirst = true;
      wire.rule = async (command): Promise<Fate> => {
        if (command.update !== jobCollections.jobs || !isFirst) return "pass";
        isFirst = false;
        const theirs = await other.claim(query({ modelLimits, fullUpstreams: ["a"] }));
        expect(theirs?.jobId).toBe("job_b");
        return "pass";
      };
      expect(await store.claim(query({ modelLimits }))).toBeUndefined();
      expect(await read()).toMatchObject({ state: "queued" });
      await must(other, "job_b", win);
      expect(await store.claim(query({ modelLimits }))).toMatchObject({ jobId: "job_a" });
    });

    test("that has lost only the hint of whom it served has its job", async () => {
      await other.insert(jobOf("job_a"));
      await must(other, "job_a", { kind: "accept", now });
      wire.rule = (command) => (command.update === jobCollections.served ? "lost request" : "pass");
      expect(await store.claim(query())).toMatchObject({ jobId: "job_a", fence: 1 });
    });
  });

  describe("due jobs", () => {
    test.each([
      ["update", "lost reply"],
      ["update", "lost request"],
      ["find", "lost reply"],
    ] as const)("%s, %s: are taken, once", async (command, fate) => {
      for (const jobId of ["job_a", "job_b"]) await other.insert(jobOf(jobId));
      const take = {
        states: ["reserving"],
        now: now + 9_000,
        until: now + 20_000,
        limit: 9,
      } as const;
      loseOnce(command, fate);
      const taken = await store.takeDue(take);
      expect(lost).toBeDefined();
      expect(taken.map(({ jobId }) => jobId)).toEqual(["job_a", "job_b"]);
      expect(await read()).toEqual(taken[0]);
      expect(await other.takeDue(take)).toEqual([]);
    });
  });

  describe("forgetting", () => {
    test.each(fates)("(%s) is done, and known to be", async (fate) => {
      await other.insert(jobOf("job_a", { slot: "k" }));
      await must(other, "job_a", { kind: "accept", now }, claim, win, complete);
      loseOnce("delete", fate);
      expect(await store.forget("job_a", expiresAt)).toBe(true);
      expect(lost).toBeDefined();
      expect(await read()).toBeUndefined();
      expect(await other.forget("job_a", expiresAt)).toBe(false);
    });

    test("is another's where he was quicker", async () => {
      await other.insert(jobOf("job_a"));
      await must(other, "job_a", { kind: "reject", failure, now });
      wire.rule = async (command): Promise<Fate> => {
        if (command.delete) await other.forget("job_a", now);
        return "pass";
      };
      expect(await store.forget("job_a", now)).toBe(false);
    });
  });

  test.each(["find", "findBySlot", "list"] as const)("%s reads again", async (method) => {
    await other.insert(jobOf("job_a", { slot: "k" }));
    const all = { states: ["reserving"], kind: undefined, after: undefined, limit: 9 } as const;
    loseOnce("find", "lost reply");
    const found = await {
      find: () => store.find("job_a"),
      findBySlot: () => store.findBySlot(slot),
      list: async () => (await store.list({ ...all, of: { keyId: "key_a" } }))[0],
    }[method]();
    expect(lost).toBeDefined();
    expect(found).toMatchObject({ jobId: "job_a" });
  });

  function read(): Promise<Job | undefined> {
    return other.find("job_a");
  }

  async function version(jobId: string): Promise<unknown> {
    const jobs = mongo.raw(database).collection<{ _id: string; v: number }>(jobCollections.jobs);
    return (await jobs.findOne({ _id: jobId }))?.v;
  }

  /** Loses the first such command for a job, and calls `meanwhile` before. */
  function loseOnce(command: string, fate: Fate, meanwhile?: () => Promise<unknown>): void {
    lost = undefined;
    wire.rule = async (sent) => {
      const itsFate = lostOnce(command, fate, sent);
      if (itsFate !== "pass") await meanwhile?.();
      return itsFate;
    };
  }

  function lostOnce(command: string, fate: Fate, sent: Document): Fate {
    if (lost || sent[command] !== jobCollections.jobs) return "pass";
    lost = sent;
    return fate;
  }
});

/** A sent command in a form for another connection. */
function resent(sent: Document | undefined): Document {
  const { lsid, txnNumber, $clusterTime, $db, $readPreference, ...command } = sent ?? {};
  return command;
}
