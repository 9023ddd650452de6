import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { root } from "./helm.ts";
import type { Manifest } from "./rendered.ts";

const read = (file: string) => readFileSync(join(root, file), "utf8");

/** Keys whose content is passed on unchanged: labels, rules, resources. */
const passedOn =
  /Labels$|labels$|annotations$|resources$|^networkPolicy\.egress\.|issuerRef$|nodeSelector$/;

/** The paths of all keys in a chart's values. */
function pathsIn(values: Manifest, path = ""): string[] {
  if (values === null || typeof values !== "object" || Array.isArray(values)) return [path];
  if (Object.keys(values).length === 0 || passedOn.test(path)) return [path];
  return Object.entries(values).flatMap(([key, one]) =>
    pathsIn(one, path ? `${path}.${key}` : key),
  );
}

/** The same for a schema. */
function pathsOf(schema: Manifest, whole: Manifest, path = ""): string[] {
  const own = schema.$ref ? whole.definitions.workload : schema;
  if (!own.properties || passedOn.test(path)) return [path];
  return Object.entries(own.properties).flatMap(([key, one]) =>
    pathsOf(one, whole, path ? `${path}.${key}` : key),
  );
}

const charts = ["genmesh", "genmesh-backing"];

test.each(charts)("%s: the schema knows the values' keys, and no others", (chart) => {
  const schema = JSON.parse(read(`charts/${chart}/values.schema.json`));
  const values = parse(read(`charts/${chart}/values.yaml`));
  // Roles have values where they differ from the defaults. `global` is a parent chart's.
  const relevant = (path: string) => !/^roles\.|^global$/.test(path);
  expect(pathsOf(schema, schema).filter(relevant).sort()).toEqual(
    pathsIn(values).filter(relevant).sort(),
  );
});

test.each(charts)("%s: every key is used, and every top-level key explained", (chart) => {
  const folder = join(root, "charts", chart, "templates");
  const templates = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((file) => /\.(yaml|tpl|txt)$/.test(file))
    .map((file) => readFileSync(join(folder, file), "utf8"))
    .join("\n");
  const text = read(`charts/${chart}/values.yaml`);
  for (const path of pathsIn(parse(text))) {
    const key = path.split(".").at(-1) ?? "";
    const isRole = /^roles\.[a-z-]+$/.test(path);
    if (!isRole) expect(templates, path).toMatch(new RegExp(`\\b${key}\\b`));
  }
});

test("the charts are of the package's version, and bring the servers that the tests use", () => {
  const { version } = JSON.parse(read("package.json"));
  const chart = parse(read("charts/genmesh/Chart.yaml"));
  expect([chart.version, chart.appVersion]).toEqual([version, version]);
  expect(read("deploy/Dockerfile")).toContain(`ARG VERSION=${version}`);
  const backing = parse(read("charts/genmesh-backing/values.yaml"));
  const compose = read("deploy/compose.yaml");
  const tests = read("test/support/backends.ts");
  for (const server of ["mongodb", "nats", "minio"]) {
    expect(tests).toContain(`image: "${backing[server].image}"`);
    expect(compose).toContain(`:-${backing[server].image}}`);
  }
});
