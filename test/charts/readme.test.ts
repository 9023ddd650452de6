import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { chartReadme, charts } from "../support/chart-readme.ts";
import { root } from "./helm.ts";

const read = (chart: string, file: string) =>
  readFileSync(join(root, "charts", chart, file), "utf8");

test.each(charts)("%s: its README is that of its values (else: npm run chart-docs)", (chart) => {
  const readme = read(chart, "README.md");
  expect(readme).toBe(chartReadme(chart));
  const { version, description } = parse(read(chart, "Chart.yaml"));
  expect(readme).toContain(`![Version: ${version}]`);
  expect(readme).toContain(description);
});
