import { readFileSync } from "node:fs";
import { join } from "node:path";
import { collectDefaultMetrics, Registry } from "prom-client";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { callersErrors } from "#kit/telemetry/inference.ts";
import { queuedJobSeconds } from "../../services/common/documents/status-document.ts";
import { emptyForMs, failingShare } from "../../services/common/documents/upstream-document.ts";
import { metricsOfSource } from "../support/metrics-page.ts";
import { findTool, root } from "./helm.ts";

const read = (file: string) => readFileSync(join(root, file), "utf8");
const alertsFile = "charts/genmesh/files/alerts.yaml";
const alerts: { alert: string; expr: string; annotations: Record<string, string> }[] = parse(
  read(alertsFile),
).groups[0].rules;
const dashboard = JSON.parse(read("charts/genmesh/files/dashboard.json"));

/** Every metric that a process exports. A histogram ends in `#`. */
function registered(): Set<string> {
  const names = metricsOfSource().map(({ name, type }) =>
    type === "histogram" ? `${name}#` : name,
  );
  const process = new Registry();
  collectDefaultMetrics({ register: process });
  return new Set([...names, ...process.getMetricsAsArray().map(({ name }) => name), "up"]);
}

/** Metrics in a PromQL expression. A histogram's series count as the histogram, with the mark of {@link registered}. */
function metricsIn(expr: string): string[] {
  const words = expr
    .replace(/"[^"]*"/g, "")
    .replace(/\{[^}]*\}/g, "")
    .replace(/\b(by|without)\s*\([^)]*\)/g, "");
  return [...words.matchAll(/\b(genmesh_\w+|nodejs_\w+|process_\w+|up)\b/g)].map(([name]) =>
    name.replace(/_(bucket|count|sum)$/, "#"),
  );
}

test("every metric of the alerts and the dashboard is one that a service exports", () => {
  const known = registered();
  const panels: string[] = dashboard.panels.flatMap((panel: { targets?: { expr: string }[] }) =>
    (panel.targets ?? []).map(({ expr }) => expr),
  );
  const expressions = [...alerts.map(({ expr }) => expr), ...panels];
  expect(expressions.length).toBeGreaterThan(50);
  for (const expr of expressions) {
    const names = metricsIn(expr);
    expect(names.length, expr).toBeGreaterThan(0);
    for (const name of names) expect(known, expr).toContain(name);
  }
});

test("alerts fire at what the console and `genmesh status` call failing, empty and late", () => {
  const exprOf = (name: string) => alerts.find(({ alert }) => alert === name)?.expr.trim();
  const words = [...callersErrors].sort().join("|");
  const ended = "genmesh_inference_duration_seconds_count";
  expect(exprOf("GenmeshUpstreamFails")).toBe(
    [
      `sum by (namespace, provider) (rate(${ended}{error!~"${words}"}[10m]))`,
      `/ sum by (namespace, provider) (rate(${ended}[10m])) > ${failingShare}`,
    ].join("\n"),
  );
  expect(exprOf("GenmeshUpstreamAccountEmpty")).toMatch(new RegExp(` < ${emptyForMs / 1_000}$`));
  expect(exprOf("GenmeshJobsWait")).toMatch(new RegExp(` > ${queuedJobSeconds}$`));
});

test("every alert has a section in the runbook, and every section an alert", () => {
  const sections = [...read("docs/operations.md").matchAll(/^#+ (Genmesh\w+)$/gm)].map(
    (one) => one[1],
  );
  expect(sections.sort()).toEqual(alerts.map(({ alert }) => alert).sort());
  for (const { alert, annotations } of alerts) {
    expect(annotations.runbook_url).toBe(`RUNBOOK#${alert.toLowerCase()}`);
    expect(annotations.summary).toBeTruthy();
  }
});

test.each(await findTool("promtool", ["--version"]))(
  "$name accepts the rules",
  async (promtool) => {
    expect(await promtool.run("check", "rules", alertsFile)).toContain("SUCCESS");
  },
);
