import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";

import type { GenerationRequest } from "../../upstreams/media/port.ts";
import { leaseMs, maxQueuedMs, maxRunningMs } from "../limits.ts";
import type { Job, JobState } from "./job.ts";
import {
  accept,
  claim,
  complete,
  expiresAt,
  fail,
  failure,
  fresh,
  inState,
  lose,
  now,
  stepped,
  win,
} from "./lifecycle.fixture.ts";
import { type JobCommand, step } from "./lifecycle.ts";

/** Every command with the states that allow it, and the next state. */
const allowed: [JobCommand, Partial<Record<JobState, JobState>>][] = [
  [{ kind: "beat", now }, { reserving: "reserving" }],
  [{ kind: "attach", pinned: [], now }, { reserving: "reserving" }],
  [accept, { reserving: "queued" }],
  [{ kind: "reject", failure, now }, { reserving: "rejected" }],
  [
    { kind: "published", now },
    { queued: "queued", running: "running" },
  ],
  [claim(), { queued: "running" }],
  [claim(now + leaseMs), { queued: "running", running: "running" }],
  [{ kind: "heartbeat", fence: 1, now }, { running: "running" }],
  // Nothing was sent.
  [{ kind: "abandoned", now: now + leaseMs }, {}],
  [{ kind: "resumable", fence: 1, resumeId: "r" }, { running: "running" }],
  [{ kind: "progress", fence: 1, percent: 5 }, { running: "running" }],
  [{ kind: "hand-back", fence: 1, now }, { running: "running" }],
  [
    { kind: "set-aside", fence: 1, until: now, nextUpstream: false, sent: false, now },
    { running: "running" },
  ],
  [{ kind: "sending", fence: 1 }, { running: "running" }],
  [
    {
      ...{ kind: "wait", fence: 1, refusal: "unavailable", until: now + 5 },
      ...{ nextUpstream: false, sent: false, now },
    },
    { running: "queued" },
  ],
  [{ kind: "pass-on", fence: 1, upstreamIndex: 0, now }, { running: "queued" }],
  // No job waits here.
  [{ kind: "offer", now: now + maxQueuedMs }, {}],
  [{ kind: "keep", until: expiresAt + 1, now }, { completed: "completed" }],
  [win(1), { running: "settling" }],
  [lose(1), { running: "failing" }],
  [{ kind: "expire", now }, {}],
  [
    { kind: "expire", now: now + maxQueuedMs },
    { queued: "failing", running: "failing" },
  ],
  [complete, { settling: "completed" }],
  [fail, { failing: "failed" }],
  [
    { kind: "cancel", now },
    { queued: "failing", running: "failing" },
  ],
  [
    { kind: "delete", now },
    { completed: "deleted", failed: "deleted" },
  ],
  [{ kind: "erased" }, { deleted: "deleted" }],
  [
    { kind: "retire", now },
    { failed: "failed", deleted: "deleted" },
  ],
  [{ kind: "unpinned" }, { completed: "completed", failed: "failed", rejected: "rejected" }],
];

describe("what each state allows", () => {
  const states = Object.keys(inState) as JobState[];
  test.each(allowed)("$kind", (command, moves) => {
    for (const state of states) {
      expect([state, step(inState[state], command)?.state]).toEqual([state, moves[state]]);
    }
  });

  test("nothing moves a worker's job but that worker", () => {
    const { running } = inState;
    for (const fence of [0, 2]) {
      for (const [command] of allowed) {
        if (!("fence" in command)) continue;
        expect(step(running, { ...command, fence })).toBeUndefined();
      }
    }
  });

  test("a step changes nothing that it was given", () => {
    for (const state of states) {
      const before = structuredClone({ ...inState[state], spec: undefined });
      for (const [command] of allowed) step(inState[state], command);
      expect({ ...inState[state], spec: undefined }).toEqual(before);
    }
  });
});

describe("what a caller wrote", () => {
  const words = "WORDS OF A CALLER";
  const url = `https://example.com/${words.replaceAll(" ", "-")}?signature=1`;
  const requests = [
    {
      ...{ kind: "image", prompt: words, count: 1, width: 8, height: 8 },
      ...{ size: undefined, resolution: undefined, aspectRatio: undefined },
    },
    {
      ...{ kind: "video", prompt: words, mode: "i2v", durationSeconds: 6, resolution: "480p" },
      ...{ aspectRatio: "auto", audio: "none", firstLastFrame: false },
    },
    { kind: "music", mode: "lyrics", title: words, description: words, lyrics: words },
  ].map((request) => ({ ...request, negativePrompt: words }) as GenerationRequest);
  const withWords = (request: GenerationRequest): Job => {
    const job = fresh();
    const references = [{ kind: "url", url, param: "input_reference.image_url" }] as const;
    return { ...job, spec: { ...job.spec, request, references } };
  };
  const text = (job: Job) =>
    inspect({ ...job, spec: { ...job.spec, upstreams: [] } }, { depth: null });

  test.each(requests)("of $kind goes with a refusal and with completion", (request) => {
    const job = withWords(request);
    expect(text(job)).toContain(words);
    const rejected = stepped(job, { kind: "reject", failure, now });
    expect(text(rejected)).not.toMatch(/WORDS/);
    const attached = stepped(job, { kind: "attach", pinned: [], now });
    expect(text(attached)).not.toContain("signature");
    expect(text(attached)).toContain(words);
    expect(text(stepped(attached, accept, claim(), win(1), complete))).not.toMatch(/WORDS/);
    // An operator may repeat it.
    expect(text(stepped(attached, accept, claim(), lose(1), fail))).toContain(words);
  });
});

test("an output that a job refers to keeps its job, and nothing else does", () => {
  const { completed } = inState;
  const keep = (until: number, at = now): JobCommand => ({ kind: "keep", until, now: at });
  expect(step(completed, keep(expiresAt - 1))).toEqual(completed);
  expect(step(completed, keep(expiresAt + 9))).toMatchObject({
    ...{ expiresAt: expiresAt + 9, dueAt: expiresAt + 9 },
  });
  expect(step(completed, keep(expiresAt + 9, expiresAt))).toBeUndefined();
});

describe("claims", () => {
  test("count attempts, and the third lost one fails the job", () => {
    let job = stepped(fresh(), accept, claim());
    expect(job).toMatchObject({ attempts: 1, fence: 1, startedAt: now });
    expect(step(job, claim(now + leaseMs - 1))).toBeUndefined();
    job = stepped(job, claim(now + leaseMs), claim(now + 2 * leaseMs));
    expect(job).toMatchObject({ state: "running", attempts: 3, fence: 3, startedAt: now });
    expect(stepped(job, claim(now + 3 * leaseMs))).toMatchObject({
      state: "failing",
      failure: { reason: ErrorReason.GENERATION_FAILED },
      lease: undefined,
    });
  });

  test("of a stored upstream task are no attempts", () => {
    let job = stepped(fresh(), accept, claim(), { kind: "resumable", fence: 1, resumeId: "task" });
    for (let i = 1; i <= 20; i++) job = stepped(job, claim(now + i * leaseMs));
    expect(job).toMatchObject({ state: "running", attempts: 1, fence: 21, resumeId: "task" });
  });

  test("that are handed back are no attempts, and can be claimed at once", () => {
    let job = stepped(fresh(), accept);
    for (let i = 0; i < 10; i++) {
      job = stepped(job, claim(), { kind: "hand-back", fence: job.fence + 1, now });
    }
    expect(job).toMatchObject({ state: "running", attempts: 0, fence: 10 });
    expect(stepped(job, claim()).attempts).toBe(1);
    // Handed back while resuming: no attempt was counted, and none is given back.
    const resumed = stepped(
      job,
      claim(),
      { kind: "resumable", fence: 11, resumeId: "task" },
      { kind: "hand-back", fence: 11, now },
      claim(),
      { kind: "hand-back", fence: 12, now },
    );
    expect(resumed.attempts).toBe(0);
  });

  test("that are handed back while the upstream may be at it fail, and say what was lost", () => {
    const sent = stepped(fresh(), accept, claim(), { kind: "sending", fence: 1 });
    const lost = stepped(sent, { kind: "hand-back", fence: 1, now });
    expect(lost).toMatchObject({
      state: "failing",
      lease: undefined,
      failure: {
        reason: ErrorReason.GENERATION_FAILED,
        message: expect.stringContaining("Nothing was charged"),
      },
    });
  });

  test("that no upstream takes are no attempts, and are parked until their time", () => {
    const until = now + 60_000;
    const more = { refusal: "too_many_requests", until, nextUpstream: false, sent: false } as const;
    let job = stepped(fresh(), accept);
    for (let i = 1; i <= 200; i++) {
      job = stepped(job, claim(), { kind: "wait", fence: i, ...more, now });
      expect(job).toMatchObject({ state: "queued", attempts: 0, wait: { times: i, until } });
      expect(job).toMatchObject({ deadline: job.createdAt + maxQueuedMs, startedAt: undefined });
      expect(step(job, claim(until - 1))).toBeUndefined();
      expect(step(job, { kind: "offer", now: until - 1 })).toBeUndefined();
      // A wake-up that was under way changes nothing.
      expect(step(job, { kind: "published", now })).toEqual(job);
      job = stepped(job, { kind: "offer", now: until });
    }
    // Not 400 of them.
    expect(job.events.map(({ name }) => name)).toEqual(["reserving", "queued", "waiting"]);
    expect(stepped(job, claim(until))).toMatchObject({ deadline: until + maxRunningMs });
    expect(step(job, { kind: "expire", now: job.deadline })?.failure?.reason).toBe(
      ErrorReason.JOB_EXPIRED,
    );
  });

  test("set aside count, wait, and may go to the next upstream", () => {
    const aside = (fence: number, nextUpstream: boolean): JobCommand => ({
      kind: "set-aside",
      fence,
      until: now + 2_000,
      nextUpstream,
      sent: false,
      now,
    });
    const job = stepped(fresh(), accept, claim(), aside(1, false));
    expect(job).toMatchObject({ attempts: 1, upstreamIndex: 0 });
    expect(step(job, claim(now + 1_999))).toBeUndefined();
    const next = stepped(job, claim(now + 2_000), aside(2, true));
    expect(next).toMatchObject({ attempts: 2, upstreamIndex: 1 });
  });

  test("past a job's time fail it", () => {
    const late = stepped(fresh(), accept, claim(now + maxQueuedMs));
    expect(late).toMatchObject({ state: "failing", failure: { reason: ErrorReason.JOB_EXPIRED } });
    const running = inState.running;
    expect(running.deadline).toBe(now + maxRunningMs);
    expect(stepped(running, claim(now + maxRunningMs))).toMatchObject({
      state: "failing",
      failure: { reason: ErrorReason.UPSTREAM_TIMEOUT },
    });
    expect(step(running, win(1, now + maxRunningMs))).toBeUndefined();
    expect(step(running, { kind: "expire", now: now + maxRunningMs - 1 })).toBeUndefined();
  });
});

describe("what is due", () => {
  test("never later than the contract allows, and at the deadline at the latest", () => {
    expect(fresh().dueAt).toBeLessThanOrEqual(now + 4_500);
    expect(inState.queued.dueAt).toBeLessThanOrEqual(now + 1_500);
    expect(inState.settling.dueAt).toBeLessThanOrEqual(now + 4_500);
    expect(inState.failing.dueAt).toBeLessThanOrEqual(now + 4_500);
    expect(inState.running.dueAt).toBeLessThanOrEqual(now + leaseMs + 1_500);
    const beat = stepped(inState.running, {
      kind: "heartbeat",
      fence: 1,
      now: now + maxRunningMs - 1,
    });
    expect(beat.dueAt).toBe(now + maxRunningMs);
  });

  test("published again and again, ever more rarely, until the job expires", () => {
    let job = inState.queued;
    const pauses: number[] = [];
    for (let at = now; at < now + maxQueuedMs && pauses.length < 20; at = job.dueAt ?? 0) {
      job = stepped(job, { kind: "published", now: at });
      pauses.push((job.dueAt ?? 0) - at);
    }
    expect(pauses.slice(0, 3)).toEqual([10_000, 20_000, 40_000]);
    expect(Math.max(...pauses)).toBe(300_000);
  });

  test("terminal jobs at once where references are pinned, else when they expire, or never", () => {
    expect(inState.completed).toMatchObject({ dueAt: expiresAt, expiresAt, progress: 0 });
    const pinned = stepped(
      fresh(1),
      { kind: "attach", pinned: [], now },
      accept,
      claim(),
      win(1),
      complete,
    );
    expect(pinned).toMatchObject({ pinsHeld: true, dueAt: now });
    expect(stepped(pinned, { kind: "unpinned" })).toMatchObject({
      pinsHeld: false,
      dueAt: expiresAt,
    });
    const forEver = stepped(inState.settling, { ...complete, expiresAt: undefined });
    expect(forEver.dueAt).toBeUndefined();
  });
});

test("a rejected job leaves its idempotency key", () => {
  expect(inState.rejected.slot).toBeUndefined();
  expect(inState.queued.slot).toBeDefined();
});

test("progress rises, and stays below 100", () => {
  const report = (percent: number): JobCommand => ({ kind: "progress", fence: 1, percent });
  const job = stepped(inState.running, report(40.7));
  expect(job.progress).toBe(40);
  expect(step(job, report(40))).toBeUndefined();
  expect(step(job, report(Number.NaN))).toBeUndefined();
  expect(stepped(job, report(100)).progress).toBe(99);
});

test("the history keeps the newest hundred steps", () => {
  let job = stepped(fresh(), accept);
  for (let i = 0; i < 120; i++) {
    job = stepped(job, claim(now + i), { kind: "hand-back", fence: job.fence + 1, now: now + i });
  }
  expect(job.events).toHaveLength(100);
  expect(job.events.at(-1)).toMatchObject({ name: "handed_back", at: now + 119 });
});
