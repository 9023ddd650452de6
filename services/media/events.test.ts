import { expect, test } from "vitest";
import { createLogger } from "#kit/base/logger.ts";
import { createMetrics } from "#kit/base/metrics.ts";
import { createJobEvents } from "./events.ts";
import { accept, claim, fresh, now, stepped } from "./jobs/lifecycle.fixture.ts";
import type { JobCommand } from "./jobs/lifecycle.ts";
import { leaseMs, lostAnswerMs } from "./limits.ts";

test("a generation counts as asked for again once, however often its upstream turns the job away then", async () => {
  const metrics = createMetrics();
  const events = createJobEvents({ log: createLogger("silent"), metrics });
  const again = now + leaseMs + lostAnswerMs;
  const wait = (fence: number): JobCommand => {
    const facts = { refusal: "too_many_requests", until: again, nextUpstream: false } as const;
    return { kind: "wait", fence, ...facts, sent: true, now: again };
  };
  const image = { ...fresh(), spec: { ...fresh().spec, kind: "image" as const } };
  let job = stepped(image, accept, claim());
  events.claimed(job);
  job = stepped(job, { kind: "sending", fence: 1 }, claim(again));
  events.claimed(job);
  for (let fence = 2; fence < 5; fence++) {
    job = stepped(job, wait(fence), claim(again));
    events.claimed(job);
  }
  const text = await metrics.text();
  expect(text).toContain('genmesh_media_attempts_total{kind="image",how="asked_again"} 1\n');
  expect(text).toContain('genmesh_media_attempts_total{kind="image",how="again"} 3\n');
});
