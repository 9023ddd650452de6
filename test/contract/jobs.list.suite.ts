import { beforeEach, describe, expect, test } from "vitest";
import {
  type Job,
  type MediaKind,
  mediaKinds,
  withoutText,
} from "../../services/media/jobs/job.ts";
import { readJobsPage } from "../../services/media/jobs/pages.ts";
import type { JobStore } from "../../services/media/jobs/store.ts";
import { jobsReadAtOnce, maxPageBytes } from "../../services/media/limits.ts";
import type { GenerationRequest } from "../../services/upstreams/media/port.ts";
import { jobOf, must, now } from "./jobs.shapes.ts";

/** The rules for lists of jobs. */
export function listedJobsContract(clients: () => [JobStore, JobStore]): void {
  describe("a list", () => {
    let store: JobStore;
    let second: JobStore;
    beforeEach(() => {
      [store, second] = clients();
    });
    const idOf = (index: number) => `job_a${String(index).padStart(2, "0")}`;
    const made = async (jobs: number, metadata: [string, string][] = []): Promise<string[]> => {
      for (let i = 0; i < jobs; i++) {
        const job = jobOf(idOf(i), { createdAt: now + i });
        await store.insert({ ...job, spec: { ...job.spec, metadata } });
      }
      return Array.from({ length: jobs }, (_, i) => idOf(jobs - 1 - i));
    };
    const query = { of: { keyId: "key_a" }, kind: undefined, after: undefined } as const;
    const idsOf = (jobs: readonly Job[]) => jobs.map(({ jobId }) => jobId);

    test.for(mediaKinds)("shows jobs without what their callers wrote: %s", async (kind) => {
      const job = jobOf("job_a", { kind });
      const long = '\u{1f30a}\u0000"\\'.repeat(1_000);
      const { request: image } = job.spec;
      const requests: Record<MediaKind, GenerationRequest> = {
        image: { ...image, prompt: long, negativePrompt: long } as GenerationRequest,
        video: {
          ...{ kind: "video", prompt: long, negativePrompt: long, seed: 7 },
          ...{ durationSeconds: 6, resolution: "480p", aspectRatio: "16:9" },
        } as GenerationRequest,
        music: {
          ...{ kind: "music", title: long, description: long, lyrics: long },
          ...{ negativePrompt: long, mode: "lyrics" },
        } as GenerationRequest,
      };
      const spec = { ...job.spec, request: requests[kind] };
      await store.insert({ ...job, spec });
      const rest = { ...job, spec: withoutText(spec) };
      expect(await second.findWithoutText("job_a")).toEqual(rest);
      const all = { of: "all", states: ["reserving"], kind, after: undefined, limit: 2 } as const;
      expect(await second.list(all)).toEqual([rest]);
      expect(await second.findWithoutText("job_b")).toBeUndefined();
      expect((await second.find("job_a"))?.spec.request).toEqual(requests[kind]);
    });

    test("is read in turns, for others do not wait for all of it", async () => {
      const newestFirst = await made(40);
      let turns = 0;
      let isOver = false;
      const count = () => {
        if (isOver) return;
        turns++;
        setImmediate(count);
      };
      setImmediate(count);
      const found = await store.list({ ...query, states: ["reserving"], limit: 40 });
      isOver = true;
      expect(idsOf(found)).toEqual(newestFirst);
      expect(turns).toBeGreaterThanOrEqual(40 / jobsReadAtOnce - 1);
    });

    test("is as long as it was asked for where jobs change meanwhile", async () => {
      const newestFirst = await made(40);
      for (const side of ["after", "before"] as const) {
        const at = { createdAt: side === "after" ? now + 99 : now - 99, jobId: "job_x" };
        const states = ["reserving"] as const;
        const listing = store.list({ ...query, states, [side]: at, limit: 30 });
        const leaving = newestFirst[side === "after" ? 29 : 12] ?? "";
        const [found] = await Promise.all([
          listing,
          must(second, leaving, { kind: "accept", now }),
        ]);
        expect(found).toHaveLength(30);
        const places = idsOf(found).map((jobId) => newestFirst.indexOf(jobId));
        expect(places).toEqual(places.toSorted((a, b) => a - b));
        expect(new Set(places).size).toBe(30);
        expect(new Set(found.map(({ state }) => state))).toEqual(new Set(["reserving"]));
      }
    });

    test("has a page's bytes of what callers wrote, and goes on in the next page", async () => {
      const note = "x".repeat(11_000);
      const newestFirst = await made(60, [["note", note]]);
      const most = Math.floor(maxPageBytes / note.length);
      const asked = { of: query.of, size: 100, state: undefined, kind: undefined };
      const pages: string[][] = [];
      for (let token = ""; ; ) {
        const page = await readJobsPage(store, { ...asked, token });
        pages.push(idsOf(page?.jobs ?? []));
        expect(page?.hasMore).toBe(page?.nextToken !== "");
        token = page?.nextToken ?? "";
        if (token === "") break;
      }
      expect(pages.flat()).toEqual(newestFirst);
      expect(pages).toHaveLength(2);
      expect(pages[0]?.length).toBeLessThanOrEqual(most);
      // Towards newer jobs, the page has the direct neighbours of the named job.
      const newer = await readJobsPage(store, { ...asked, token: "", before: idOf(0) });
      const nearest = newestFirst.slice(0, -1).slice(-(newer?.jobs.length ?? 0));
      expect(idsOf(newer?.jobs ?? [])).toEqual(nearest);
      expect(newer).toMatchObject({ hasMore: true, nextToken: "" });
      expect(newer?.jobs.length).toBeLessThanOrEqual(most);
      // A job that is larger than a page's bytes is a page of its own.
      const large = jobOf("job_b", { key: "key_b" });
      const metadata = [["note", "x".repeat(maxPageBytes)]] as const;
      await store.insert({ ...large, spec: { ...large.spec, metadata } });
      const alone = await readJobsPage(store, { ...asked, of: { keyId: "key_b" }, token: "" });
      expect(alone).toMatchObject({ jobs: [{ jobId: "job_b" }], hasMore: false });
    });
  });
}
