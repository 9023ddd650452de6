// `node test/support/chart-readme.ts` writes the tables in the charts' READMEs, in the form of helm-docs, from their values and comments.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isMap, isScalar, type Pair, parse, parseDocument, type YAMLMap } from "yaml";
import { thisCheckout } from "./checkout.ts";

/** The charts of this repository, by their folders. */
export const charts = ["genmesh", "genmesh-backing"] as const;

/** The heading below which a README is generated. The text above it is written by hand. */
const generatedFrom = "## Requirements";

const pathOf = (chart: string, file: string) => join(thisCheckout, "charts", chart, file);

/** A chart's README with its generated part as it must be. */
export function chartReadme(chart: string): string {
  const readme = readFileSync(pathOf(chart, "README.md"), "utf8");
  const [own = ""] = readme.split(`${generatedFrom}\n`);
  const { kubeVersion } = parse(readFileSync(pathOf(chart, "Chart.yaml"), "utf8"));
  const values = parseDocument(readFileSync(pathOf(chart, "values.yaml"), "utf8"));
  const rows = isMap(values.contents) ? rowsOf(values.contents, "", values.commentBefore) : [];
  return [
    `${own}${generatedFrom}\n`,
    `Kubernetes: \`${kubeVersion}\`\n`,
    "## Values\n",
    "| Key | Type | Default | Description |",
    "|-----|------|---------|-------------|",
    ...rows,
    "",
  ].join("\n");
}

/** A row for each key without keys of its own, in the order of the file. */
function rowsOf(map: YAMLMap, path: string, first?: string | null): string[] {
  return map.items.flatMap((pair, index) => {
    const { key, value } = pair as Pair;
    const name = isScalar(key) ? String(key.value) : "";
    const at = path === "" ? name : `${path}.${name}`;
    const before = isScalar(key) ? key.commentBefore : undefined;
    const told = before ?? (index === 0 ? first : undefined);
    if (isMap(value) && value.items.length > 0) return rowsOf(value, at, value.commentBefore);
    const found = (value as { toJSON?(): unknown } | null)?.toJSON?.() ?? null;
    return [
      `| ${at} | ${typeOf(found)} | \`${JSON.stringify(found).replaceAll("|", "\\|")}\` | ${wordsOf(told)} |`,
    ];
  });
}

/** The last paragraph of a comment, in one line. */
function wordsOf(comment: string | null | undefined): string {
  const paragraph = (comment ?? "").split(/\n\s*\n/).at(-1) ?? "";
  return paragraph
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => !line.startsWith("──"))
    .join(" ")
    .replaceAll("|", "\\|")
    .replaceAll(/<[\w-]+>/g, "`$&`")
    .trim();
}

function typeOf(value: unknown): string {
  if (Array.isArray(value)) return "list";
  if (typeof value === "boolean") return "bool";
  if (typeof value === "number") return Number.isInteger(value) ? "int" : "float";
  return typeof value === "string" ? "string" : "object";
}

if (import.meta.main) {
  for (const chart of charts) writeFileSync(pathOf(chart, "README.md"), chartReadme(chart));
}
