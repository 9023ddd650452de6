import { expect, test } from "vitest";
import { createLogger } from "#kit/base/logger.ts";
import { createMetrics } from "#kit/base/metrics.ts";
import type { Charge, Intent } from "../store/store.ts";
import { createTextEvents } from "./events.ts";

test("reported costs of upstreams are counted by whether the charge covers them", async () => {
  const metrics = createMetrics();
  const events = createTextEvents({ log: createLogger("silent"), metrics });
  const request = { operation: "chat", modelId: "chat-1" } as Intent;
  const tokens = { input: 1, cachedInput: 0, output: 1, estimated: false };
  const charges: Partial<Charge>[] = [
    { amount: 5n, upstreamCost: 5n, upstreamCostSource: "reported" },
    { amount: 5n, upstreamCost: 6n, upstreamCostSource: "reported" },
    { amount: undefined, upstreamCost: 1n, upstreamCostSource: "reported" },
    { amount: 5n, upstreamCost: 9n, upstreamCostSource: "catalog" },
    { amount: 5n },
  ];
  for (const charge of charges) {
    events.closed(request, "completed", { amount: undefined, ...tokens, ...charge });
  }
  const lines = (await metrics.text())
    .split("\n")
    .filter((line) => /^genmesh_text_upstr/.test(line));
  expect(lines.sort()).toEqual([
    'genmesh_text_upstream_costs_total{model="chat-1",charge="below"} 2',
    'genmesh_text_upstream_costs_total{model="chat-1",charge="covers"} 1',
  ]);
});
