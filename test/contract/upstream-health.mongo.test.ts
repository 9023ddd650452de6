import { expect, test } from "vitest";
import { createLogger } from "#kit/base/logger.ts";
import { createMetrics } from "#kit/base/metrics.ts";
import { createInferences, type InferenceCall } from "#kit/telemetry/inference.ts";
import { manualClock } from "#kit/time/clock.ts";
import { createUpstreamAccounts } from "#kit/upstream/accounts.ts";
import {
  createUpstreamHealth,
  reportCountsMs,
  reportMs,
} from "../../services/upstreams/health/index.ts";
import { createMongoHealthStore } from "../../services/upstreams/health/store-mongo.ts";
import { describeMongo } from "../support/mongo.ts";
import { until } from "../support/until.ts";

const log = createLogger("silent", { write: () => {} });
const call = (provider: string, more: Partial<InferenceCall> = {}): InferenceCall => ({
  ...{ operation: "chat", provider, model: "m" },
  ...more,
});

await describeMongo("how upstreams do, told over MongoDB", (mongo) => {
  test("each process tells what all of them count, and one that is gone counts no more", async () => {
    const name = mongo.newName();
    const clock = manualClock();
    const processes = ["one", "two"].map((process) => {
      const metrics = createMetrics();
      const store = createMongoHealthStore(mongo.connect(name));
      const parts = { metrics, clock, log };
      return {
        accounts: createUpstreamAccounts(parts),
        inferences: createInferences({ metrics }),
        health: createUpstreamHealth({ ...parts, store, process }),
      };
    });
    const [one, two] = processes as [(typeof processes)[0], (typeof processes)[0]];
    one.inferences.begin(call("a")).end();
    one.inferences.begin(call("a"));
    two.inferences.begin(call("a")).end("timeout");
    two.inferences.begin(call("a")).end("cancelled");
    two.inferences.begin(call("a"));
    two.inferences.begin(call("a"));
    const song = { operation: "generate_content", output: "music" } as const;
    two.inferences.begin(call("b", song)).end();
    two.accounts.empty("b", {});
    await clock.advance(reportMs);
    const told = {
      processes: 2,
      upstreams: [
        { name: "a", requests: 3, errors: 1, lastError: "timeout", inFlight: 3, busiest: 2 },
        { name: "b", requests: 1, errors: 0, inFlight: 0, emptyAtMs: expect.any(Number) },
      ],
    };
    for (const { health } of processes) {
      const read = await until("both to have reported", async () => {
        const read = await health.read();
        return read.processes === 2 && read.upstreams.length === 2 ? read : undefined;
      });
      expect(read).toMatchObject(told);
      expect(read.upstreams[0]?.p50Ms).toBeGreaterThan(0);
    }
    two.health[Symbol.dispose]();
    await clock.advance(reportCountsMs + 1);
    const left = await one.health.read();
    expect(left).toMatchObject({ processes: 1, upstreams: [{ requests: 1, inFlight: 1 }] });
    one.health[Symbol.dispose]();
  });
});
