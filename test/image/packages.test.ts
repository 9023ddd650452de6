import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { buildConsole } from "../../gateway/console/build.ts";
import { root, tempFolder } from "../host/process.ts";

test("the image is built with the bundler and every package of the console's page", async () => {
  await using folder = await tempFolder();
  const modules = await buildConsole(join(folder.path, "app"));
  const packages = new Set(
    modules.flatMap((path) => /\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? []),
  );
  // It comes with its package.
  expect(packages.delete("@preact/signals-core")).toBe(true);
  const dockerfile = readFileSync(join(root, "deploy/Dockerfile"), "utf8");
  const [, list = "[]"] = /^ +(\["rolldown", .*\]) \\$/m.exec(dockerfile) ?? [];
  expect(JSON.parse(list).sort()).toEqual(["rolldown", ...packages].sort());
});
