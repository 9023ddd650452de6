import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { findHelms, kubernetes, render, root } from "./helm.ts";

const examples = ["minimal", "evaluation", "production", "everything", "external-secrets"];
const helms = await findHelms();

describe.each(helms)("$name", (helm) => {
  test.each(examples)("lints and renders %s as it is committed", async (example) => {
    const values = ["--values", `charts/genmesh/examples/${example}.values.yaml`];
    await helm.run("lint", "--strict", "charts/genmesh", "--kube-version", kubernetes, ...values);
    const rendered = await render(helm, "genmesh", ...values);
    await expect(inOrder(rendered)).toMatchFileSnapshot(
      join(root, `charts/genmesh/examples/${example}.rendered.yaml`),
    );
  });

  test("lints and renders the backing as it is committed", async () => {
    await helm.run("lint", "--strict", "charts/genmesh-backing", "--kube-version", kubernetes);
    await expect(inOrder(await render(helm, "genmesh-backing"))).toMatchFileSnapshot(
      join(root, "charts/genmesh-backing/examples/default.rendered.yaml"),
    );
  });
});

// Helm 3 calls a cluster before it renders notes.
test.each(helms.filter(({ name }) => name !== "helm 3"))(
  "$name: the notes say how to get the key and to call",
  async (helm) => {
    const install = ["install", "genmesh", "charts/genmesh", "--dry-run=client"];
    const notes = await helm.run(...install, "--set", "stores.existingSecret=x");
    expect(notes).toMatch(/get secret genmesh-tokens -o jsonpath='\{\.data\.bootstrap-api-key\}'/);
    expect(notes).toContain("/v1/responses");
  },
);

/** The trimmed documents by source and name, because the major versions differ in order and space. */
function inOrder(rendered: string): string {
  const documents = rendered
    .split(/^---\n/m)
    .map((text) => text.replace(/[ \t]+$/gm, "").trim())
    .filter((text) => /^kind:/m.test(text));
  return `${documents
    .map((text) => ({
      text,
      key: `${text.split("\n", 1)[0]} ${/^ {2}name: .*/m.exec(text)?.[0]} ${/^kind: .*/m.exec(text)?.[0]}`,
    }))
    .sort((a, b) => (a.key < b.key ? -1 : 1))
    .map(({ text }) => text)
    .join("\n---\n")}\n`;
}
