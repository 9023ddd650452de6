import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { findHelms, kubernetes, root } from "./helm.ts";

/** A page's name of the reader's own file. */
const yourValues = "charts/genmesh/examples/production.values.yaml";
/** Options of an installation that a rendering does not have. */
const ofInstalling = /^--(wait|create-namespace|cascade)$/;

/** The words after `helm install` and `helm upgrade` in a page's shell lines. */
function installations(page: string): string[][] {
  const text = readFileSync(join(root, page), "utf8").replace(/\\\n\s*/g, "");
  const lines = [...text.matchAll(/^ *helm (?:install|upgrade) (.+)$/gm)];
  return lines.map(([, words = ""]) =>
    words
      .split(/\s+/)
      .filter((word) => !ofInstalling.test(word))
      .map((word) => (word === "my-values.yaml" ? yourValues : word)),
  );
}

const pages = ["docs/running.md", "docs/operations.md", "charts/genmesh/README.md"];

test.each(await findHelms())("$name takes the installations of the pages", async (helm) => {
  const all = pages.flatMap(installations);
  expect(all.length).toBeGreaterThan(4);
  const renderings = all.map((words) =>
    helm.run("template", "--kube-version", kubernetes, ...words),
  );
  for (const rendered of await Promise.all(renderings)) expect(rendered).toContain("kind: ");
});
