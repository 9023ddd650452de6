import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { version } from "../services/host/version.ts";
import { findTool } from "./charts/helm.ts";
import { tempFolder } from "./host/process.ts";
import { thisCheckout } from "./support/checkout.ts";

const run = promisify(execFile);
const release = (...args: string[]) =>
  run(process.execPath, ["deploy/release.ts", "--without", "image", ...args], {
    cwd: thisCheckout,
  });

test("a dry run makes the files of a release, and names each step that it skips", async () => {
  await using folder = await tempFolder();
  const { stdout } = await release("--dry-run", "--out", folder.path);
  const files = await readdir(folder.path);
  expect(stdout).toMatch(
    /^notes: done\ndescription: done\nbill of materials: done\ncharts: (done|skipped, needs helm)\nsite: (done|skipped, needs npm ci --prefix deploy\/site)\n/,
  );
  expect(stdout).toMatch(/^signature: skipped, needs (cosign and )?--sign-key$/m);
  const read = (name: string) => readFile(join(folder.path, name), "utf8");

  const changelog = await readFile(join(thisCheckout, "CHANGELOG.md"), "utf8");
  expect(changelog).toContain((await read("notes.md")).trim());
  const bill = JSON.parse(await read("sbom.spdx.json"));
  const names = bill.packages.map((one: { name: string }) => one.name);
  expect(bill.spdxVersion).toBe("SPDX-2.3");
  expect(names).toContain("fastify");
  expect(names).not.toContain("vitest");
  if (/^site: done$/m.test(stdout)) {
    const site = join(folder.path, `genmesh-docs-${version}.tar.gz`);
    expect((await run("tar", ["--list", "--file", site])).stdout).toContain("./index.html\n");
  }
  await run("sha256sum", ["--check", "--strict", "SHA256SUMS"], { cwd: folder.path });
  const summed = (await read("SHA256SUMS")).trim().split("\n");
  expect(summed.map((line) => line.split("  ")[1]).sort()).toEqual(
    files.filter((name) => name !== "SHA256SUMS").sort(),
  );
});

const helms = await findTool("helm", ["version"]);
test.each(helms)("with $name the charts are packages with their changes", async (helm) => {
  await using folder = await tempFolder();
  await release("--without", "site", "--dry-run", "--out", folder.path);
  const archive = join(folder.path, `genmesh-${version}.tgz`);
  const chart = await helm.run("show", "chart", archive);
  expect(chart).toContain("artifacthub.io/changes");
  expect(chart).toContain('artifacthub.io/prerelease: "false"');
  const example = join(thisCheckout, "charts/genmesh/examples/minimal.values.yaml");
  const rendered = await helm.run("template", archive, "--values", example);
  expect(rendered).toContain("kind: Deployment");
});

test("a folder with files in it is refused, and so is a version without a tag", async () => {
  await expect(release("--out", thisCheckout)).rejects.toThrow("is not empty");
  await using folder = await tempFolder();
  await expect(release("--out", folder.path)).rejects.toThrow(
    /CHANGELOG.md has no section|has no tag|has changes/,
  );
});
