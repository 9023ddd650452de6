import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { metricsPage } from "./support/metrics-page.ts";

test("docs/metrics.md tells every metric as the source registers it (npm run metrics)", () => {
  const committed = readFileSync(new URL("../docs/metrics.md", import.meta.url), "utf8");
  expect(committed).toBe(metricsPage());
});
