import { readFileSync } from "node:fs";
import { join } from "node:path";
import { metricNames } from "#kit/telemetry/schema.ts";
import { thisCheckout } from "./checkout.ts";
import { houseFiles } from "./own-files.ts";

/** A metric with the values of its registration. */
export interface SourceMetric {
  file: string;
  type: string;
  name: string;
  help: string;
  labels: string[];
}

const beginning = /\.(counter|gauge|histogram)\(\s*/g;
const whole =
  /^\.(counter|gauge|histogram)\(\s*"(genmesh_\w+)",\s*"([^"]+)",\s*(\[[^\]]*\]|[a-z]\w*)/i;

/**
 * Every metric that the services and the gateway register, in the order of files. Throws where a registration has a form that this function
 * cannot read.
 */
export function metricsOfSource(): SourceMetric[] {
  return houseFiles().flatMap((file) =>
    metricsOf(file, readFileSync(join(thisCheckout, file), "utf8")),
  );
}

function metricsOf(file: string, source: string): SourceMetric[] {
  return [...source.matchAll(beginning)].map(({ index }) => {
    const found = whole.exec(source.slice(index));
    const [, type = "", name = "", help = "", labels = ""] = found ?? [];
    if (!found) throw new Error(`${file}: a metric without a literal name, text and labels`);
    return { file, type, name, help, labels: labelsOf(labels, source) };
  });
}

/** The names in a list of labels. A list that is named or spread is in the same file. */
function labelsOf(list: string, source: string): string[] {
  const named = (name: string) => {
    const [, text] = new RegExp(`const ${name} = (\\[[^\\]]*\\])`).exec(source) ?? [];
    if (text === undefined) throw new Error(`the labels ${name} are of another file`);
    return labelsOf(text, source);
  };
  if (!list.startsWith("[")) return named(list);
  return [...list.matchAll(/"(\w+)"|\.\.\.(\w+)/g)].flatMap(([, label, spread]) =>
    label === undefined ? named(spread ?? "") : [label],
  );
}

/** The parts that export metrics, by the files that register these. */
const parts: [title: string, files: RegExp][] = [
  ["Gateway", /^gateway\//],
  ["auth", /^services\/auth\//],
  ["billing", /^services\/billing\//],
  ["catalog", /^services\/catalog\//],
  ["Alerts to operators: every role with a database", /^services\/notices\//],
  ["text", /^services\/(text|upstreams\/(text|pools))\//],
  ["media and media-worker", /^services\/(media|upstreams\/media)\//],
  [
    "Calls of upstreams: text, media and media-worker",
    /^services\/kit\/(upstream\/|telemetry\/inference)/,
  ],
  [
    "Stores, queue and internal calls: every role that has them",
    /^services\/(host|kit\/(queue|store|telemetry\/rpc))/,
  ],
];

/** The page of all metrics. Throws where a metric belongs to no part. */
export function metricsPage(): string {
  const all = metricsOfSource();
  const partOf = ({ file }: SourceMetric) => parts.find(([, files]) => files.test(file))?.[0];
  const stray = all.filter((metric) => partOf(metric) === undefined).map(({ file }) => file);
  if (stray.length > 0) throw new Error(`metrics of no part: ${stray.join(", ")}`);
  const sections = parts.map(([title]) => {
    const rows = all
      .filter((metric) => partOf(metric) === title)
      .sort((a, b) => (a.name < b.name ? -1 : 1));
    return `## ${title}\n\n| metric | type | labels | counts |\n|---|---|---|---|\n${rows.map(rowOf).join("\n")}\n`;
  });
  return `# Metrics

Generated from the source by \`npm run metrics\`. Every process has \`/metrics\` on its operations port, in Prometheus' format. Where
\`OTEL_EXPORTER_OTLP_ENDPOINT\` names a collector, the process sends it the same figures ([configuration.md](configuration.md)). A name
behind an arrow is the name in OpenTelemetry's conventions, under which the figure is sent. Without an arrow it is sent under its own name.

A histogram has the series \`_bucket\`, \`_sum\` and \`_count\`. Durations and ages are in seconds. Money is in USD micros or credits. No
label holds anything that a caller wrote, and none names a caller's account or key. Each process also exports \`process_*\` and \`nodejs_*\`, as
Node's client for Prometheus makes them. [operations.md](operations.md#runbook) says which figures raise an alert.

${sections.join("\n")}`;
}

function rowOf({ name, type, labels, help }: SourceMetric): string {
  const other = metricNames[name]?.name;
  const sentAs = other === undefined ? "" : ` → \`${other}\``;
  const listed = labels.map((label) => `\`${label}\``).join(", ");
  return `| \`${name}\`${sentAs} | ${type} | ${listed || "–"} | ${help.replace(/\.$/, "")} |`;
}

if (import.meta.main) process.stdout.write(metricsPage());
