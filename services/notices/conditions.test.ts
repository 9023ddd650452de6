import { expect, test } from "vitest";
import { createMetrics } from "#kit/base/metrics.ts";
import { manualClock } from "#kit/time/clock.ts";
import type { UpstreamFigures } from "../upstreams/health/figures.ts";
import { createConditions } from "./conditions.ts";

const minuteMs = 60_000;

function start(role = "all") {
  const metrics = createMetrics();
  const clock = manualClock();
  const upstreams: UpstreamFigures[] = [];
  const state = { isRefused: false };
  const find = createConditions({
    ...{ metrics, clock, role },
    health: { read: async () => ({ upstreams }) },
    catalog: { isRefused: () => state.isRefused },
  });
  const found = async () => (await find()).map(({ kind, subject }) => `${kind} ${subject}`.trim());
  return { metrics, clock, upstreams, state, found };
}

test("stores, the queue, certificates and the catalog are conditions while they are so", async () => {
  const { metrics, clock, state, found } = start("media");
  const up = metrics.gauge("genmesh_store_up", "", ["store"]);
  const queue = metrics.gauge("genmesh_queue_connected", "", []);
  const end = metrics.gauge("genmesh_tls_certificate_end_timestamp_seconds", "", []);
  const day = 24 * 3_600;
  up.of("blobs").value = 1;
  queue.of().value = 1;
  end.of().value = clock.now() / 1_000 + 15 * day;
  expect(await found()).toEqual([]);
  up.of("blobs").value = 0;
  queue.of().value = 0;
  end.of().value -= 2 * day;
  state.isRefused = true;
  const most = ["store_away blobs of media", "certificate_ends media", "catalog_refused"];
  expect(await found()).toEqual(most);
  // A short break of the queue does no harm.
  await clock.advance(2 * minuteMs);
  expect(await found()).toEqual([most[0], "queue_away media", ...most.slice(1)]);
  up.of("blobs").value = 1;
  queue.of().value = 1;
  end.of().value += 90 * day;
  state.isRefused = false;
  expect(await found()).toEqual([]);
});

test("an upstream is one for a while after it refused a key or a payment, and while it fails", async () => {
  const { metrics, clock, upstreams, found } = start();
  const empty = metrics.gauge("genmesh_upstream_account_empty_timestamp_seconds", "", ["upstream"]);
  const refused = metrics.gauge("genmesh_upstream_key_refused_timestamp_seconds", "", [
    ...(["upstream", "key"] as const),
  ]);
  empty.of("a").value = clock.now() / 1_000;
  refused.of("b", "B_KEY").value = clock.now() / 1_000;
  const figures = { p50Ms: undefined, p95Ms: undefined, lastError: "", inFlight: 0, busiest: 0 };
  const more = { ...figures, emptyAtMs: undefined, resting: [] };
  upstreams.push({ name: "few", requests: 4, errors: 4, ...more });
  upstreams.push({ name: "c", requests: 10, errors: 3, ...more });
  upstreams.push({ name: "d", requests: 10, errors: 2, ...more });
  expect(await found()).toEqual([
    ...["upstream_account_empty a", "upstream_key_refused b, the key in B_KEY", "upstream_fails c"],
  ]);
  await clock.advance(15 * minuteMs);
  upstreams.length = 0;
  expect(await found()).toEqual([]);
});

test("counters are conditions when they grew lately, some only when they grow again and again", async () => {
  const { metrics, clock, found } = start();
  const reviews = metrics.counter("genmesh_text_reviews_total", "", []);
  const checks = metrics.counter("genmesh_billing_owner_checks_total", "", ["owner", "verdict"]);
  expect(await found()).toEqual([]);
  reviews.of().value = 1;
  expect(await found()).toEqual(["usage_in_review"]);
  await clock.advance(60 * minuteMs);
  expect(await found()).toEqual([]);
  for (let i = 0; i < 8; i++) {
    checks.of("text", "away").value++;
    checks.of("media", "open").value++;
    expect(await found()).toEqual(i < 6 ? [] : ["holds_unanswered text"]);
    await clock.advance(2.5 * minuteMs);
  }
  await clock.advance(3 * minuteMs);
  expect(await found()).toEqual([]);
});

test("a job is one that waits long, or that stays in a state that a sweep should end", async () => {
  const { metrics, clock, found } = start();
  const ages = metrics.gauge("genmesh_media_oldest_job_seconds", "", ["kind", "state"]);
  ages.of("image", "queued").value = 300;
  ages.of("video", "running").value = 9_000;
  expect(await found()).toEqual([]);
  ages.of("image", "queued").value = 301;
  expect(await found()).toEqual(["jobs_wait image"]);
  ages.of("image", "queued").value = 0;
  for (let seconds = 0; seconds <= 700; seconds += 20) {
    ages.of("music", "settling").value = 100 + seconds;
    expect(await found()).toEqual(seconds < 600 ? [] : ["jobs_stand music, settling"]);
    await clock.advance(20_000);
  }
  // A younger job is the oldest now.
  ages.of("music", "settling").value = 5;
  expect(await found()).toEqual([]);
});
