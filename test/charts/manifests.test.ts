import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { findTool, root, type Tool } from "./helm.ts";
import { examples, type Manifest, rendered } from "./rendered.ts";

/** Kinds of other products. Their schemas come with those. */
const foreign = [
  ...["BackendTLSPolicy", "Certificate", "ExternalSecret", "GRPCRoute", "HTTPRoute"],
  ...["PrometheusRule", "ScaledObject", "ServiceMonitor"],
];
const files = [
  ...examples.map((example) => `charts/genmesh/examples/${example}.rendered.yaml`),
  "charts/genmesh-backing/examples/default.rendered.yaml",
];
const { roots, definitions } = JSON.parse(
  readFileSync(join(root, "test/charts/kubernetes.schemas.json"), "utf8"),
) as { roots: string[]; definitions: Record<string, unknown> };
const folder = mkdtempSync(join(tmpdir(), "genmesh-schemas-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

writeFileSync(join(folder, "definitions.json"), JSON.stringify({ definitions }));
for (const name of roots) {
  const [kind = ""] = name.split(".").slice(-1);
  const schema = { $ref: `definitions.json#/definitions/${name}` };
  writeFileSync(join(folder, `${kind.toLowerCase()}.json`), JSON.stringify(schema));
}

function validate(kubeconform: Tool, file: string): Promise<string> {
  const location = join(folder, "{{.ResourceKind}}.json");
  return kubeconform.run(
    "-schema-location",
    location,
    "-skip",
    foreign.join(","),
    "-strict",
    "-summary",
    file,
  );
}

describe.each(await findTool("kubeconform", ["-v"]))("$name", (kubeconform) => {
  test.each(files)("finds nothing wrong with %s", async (file) => {
    expect(await validate(kubeconform, file)).toMatch(/Invalid: 0, Errors: 0/);
  });

  test("finds a misspelt field, and a number that is a word", async () => {
    const text = readFileSync(join(root, files[0] ?? ""), "utf8");
    for (const [good, bad] of [
      ["readinessProbe:", "readynessProbe:"],
      ["replicas: 2", "replicas: two"],
    ] as const) {
      const file = join(folder, "bad.yaml");
      writeFileSync(file, text.replace(good, bad));
      await expect(validate(kubeconform, file)).rejects.toThrow(/Invalid: 1/);
    }
  });
});

test("every kind is validated, or is another product's", () => {
  const known = new Set([...roots.map((name) => name.split(".").at(-1)), ...foreign]);
  const kinds = new Set(
    examples.flatMap((example) => rendered(example)).map((one: Manifest) => one.kind),
  );
  expect([...kinds].filter((kind) => !known.has(kind))).toEqual([]);
  for (const kind of foreign) expect(kinds).toContain(kind);
});
