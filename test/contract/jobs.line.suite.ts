import { beforeEach, describe, expect, test } from "vitest";
import { turnsOf } from "../../services/media/jobs/fairness.ts";
import type { JobStore } from "../../services/media/jobs/store.ts";
import { accountsIn } from "../../services/media/jobs/waiting-jobs.ts";
import { jobOf, must, now, query, queuedIn } from "./jobs.shapes.ts";

/** The rules for the order of waiting jobs, in every store. `open` gives two clients of one empty store. */
export function waitingLineContract(open: () => Promise<[JobStore, JobStore]>): void {
  let store: JobStore;
  let second: JobStore;
  beforeEach(async () => {
    [store, second] = await open();
  });
  const lineOf = async () => {
    const line = await second.line("image");
    if (!line) throw new Error("there is no line");
    return { accounts: accountsIn(line.lanes, line.accounts), running: line.running };
  };

  describe("the line of waiting jobs", () => {
    test("has the order in which workers claim them", async () => {
      const served = async (account: string, at: number) => {
        await queuedIn(store, `job_${account}_0`, { account, createdAt: at });
        expect((await store.claim(query({ now: at })))?.accountId).toBe(account);
      };
      // Two accounts run as many jobs, and one of them was served earlier. A third account has never been served.
      await served("acct_late", now + 1);
      await served("acct_soon", now + 2);
      let made = now + 10;
      for (const account of ["late", "late", "late", "soon", "soon", "new", "new", "new", "late"]) {
        const model = made % 2 === 0 ? "m" : "another";
        const shape = { account: `acct_${account}`, model, createdAt: made };
        await queuedIn(store, `job_${made++}`, shape);
      }
      const { accounts, running } = await lineOf();
      const one = { model: "m", upstream: "studio" };
      expect(running).toEqual([one, one]);
      const told = turnsOf(accounts, 100).map(({ createdAt }) => createdAt);
      expect(told).toHaveLength(9);
      const claimed: (number | undefined)[] = [];
      for (const at of told) {
        const job = await store.claim(query({ now: at + 100 + claimed.length }));
        claimed.push(job?.createdAt);
      }
      expect(claimed).toEqual(told);
      expect(turnsOf(accounts, 4).map(({ createdAt }) => createdAt)).toEqual(told.slice(0, 4));
    });

    test("is without jobs of other kinds, those not accepted yet, and those whose upstream takes none", async () => {
      expect(await lineOf()).toEqual({ accounts: [], running: [] });
      await queuedIn(store, "job_music", { kind: "music" });
      await queuedIn(store, "job_parked");
      const claimed = await store.claim(query());
      expect(claimed?.jobId).toBe("job_parked");
      const away = { refusal: "unavailable", until: now + 9, nextUpstream: false } as const;
      await must(store, "job_parked", { kind: "wait", fence: 1, sent: false, now, ...away });
      await store.insert(jobOf("job_reserving", { account: "acct_b" }));
      await queuedIn(store, "job_waits", { account: "acct_b", createdAt: now + 1 });
      expect(await lineOf()).toEqual({
        accounts: [{ accountId: "acct_b", running: 0, servedAt: 0, createdAt: [now + 1] }],
        running: [],
      });
    });
  });
}
