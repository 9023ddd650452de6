import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { collectDefaultMetrics, Registry } from "prom-client";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { findTool, root } from "./helm.ts";

const read = (file: string) => readFileSync(join(root, file), "utf8");
const alertsFile = "charts/genmesh/files/alerts.yaml";
const alerts: { alert: string; expr: string; annotations: Record<string, string> }[] = parse(
  read(alertsFile),
).groups[0].rules;
const dashboard = JSON.parse(read("charts/genmesh/files/dashboard.json"));

/** The first argument of every metric that the services register. */
function registered(): Set<string> {
  const files = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], {
    cwd: root,
    encoding: "utf8",
  })
    .split("\n")
    .filter((file) => /^(services|gateway)\/.*\.ts$/.test(file) && !file.endsWith(".test.ts"));
  const names = files.flatMap((file) =>
    [...read(file).matchAll(/\.(counter|gauge|histogram)\(\s*"(genmesh_[a-z_]+)"/g)].map((one) =>
      one[1] === "histogram" ? `${one[2]}#` : `${one[2]}`,
    ),
  );
  const process = new Registry();
  collectDefaultMetrics({ register: process });
  return new Set([...names, ...process.getMetricsAsArray().map(({ name }) => name), "up"]);
}

/** Metrics in a PromQL expression; a histogram's series stand for it, marked as {@link registered} marks it. */
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
