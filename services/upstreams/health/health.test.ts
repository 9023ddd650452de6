import { expect, test } from "vitest";
import { createLogger } from "#kit/base/logger.ts";
import { createMetrics } from "#kit/base/metrics.ts";
import { createInferences } from "#kit/telemetry/inference.ts";
import { manualClock } from "#kit/time/clock.ts";
import { createUpstreamHealth } from "./index.ts";
import { noOthers } from "./store.ts";

function start() {
  const clock = manualClock();
  const metrics = createMetrics();
  const { begin } = createInferences({ metrics });
  const log = createLogger("silent", { write: () => {} });
  const health = createUpstreamHealth({ clock, metrics, log, store: noOthers, process: "one" });
  /** In steps: a process reads its metrics every ten seconds. */
  const pass = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 5_000) await clock.advance(5_000);
  };
  const call = (provider: string) => begin({ operation: "chat", provider, model: "m" });
  return { pass, health, call, metrics };
}

test("what ended counts for five minutes, also where it was never asked for before", async () => {
  const { pass, health, call } = start();
  const requests = async () => (await health.read()).upstreams.map((one) => one.requests);
  // The first reading of a process that has done nothing yet.
  await pass(1);
  call("a").end();
  expect(await requests()).toEqual([1]);
  await pass(290_000);
  call("a").end();
  expect(await requests()).toEqual([2]);
  await pass(30_000);
  expect(await requests()).toEqual([1]);
  await pass(300_000);
  expect(await requests()).toEqual([0]);
  health[Symbol.dispose]();
});

test("errors of callers are none of the upstream's, and its latency is that of what it answered", async () => {
  const { health, call } = start();
  for (const error of ["cancelled", "policy", "content_policy", "invalid_request"]) {
    call("a").end(error);
  }
  call("b").end("timeout");
  call("b").end("timeout");
  call("b").end("denied");
  const { upstreams } = await health.read();
  expect(upstreams).toMatchObject([
    { name: "a", requests: 4, errors: 0, lastError: "", p50Ms: undefined },
    { name: "b", requests: 3, errors: 3, lastError: "timeout", p50Ms: undefined },
  ]);
  call("a").end();
  expect((await health.read()).upstreams[0]).toMatchObject({ p50Ms: 10, p95Ms: 10 });
  health[Symbol.dispose]();
});

test("an upstream that gets no requests has the reasons, for as long as they last", async () => {
  const { health, call, metrics } = start();
  const resting = metrics.gauge("genmesh_upstream_resting", "", ["lane", "reason"]);
  call("a").end();
  resting.of("a", "limited").value = 1;
  resting.of("a", "failed").value = 2;
  resting.of("b#2", "key_refused").value = 1;
  expect((await health.read()).upstreams).toMatchObject([
    { name: "a", requests: 1, resting: ["failed", "limited"] },
    { name: "b#2", requests: 0, resting: ["key_refused"] },
  ]);
  resting.of("a", "limited").value = 0;
  resting.of("a", "failed").value = 0;
  expect((await health.read()).upstreams[0]).toMatchObject({ name: "a", resting: [] });
  health[Symbol.dispose]();
});
