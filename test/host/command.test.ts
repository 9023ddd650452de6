import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { describe, expect, test } from "vitest";
import { root, startProcess, tempFolder, type Variables } from "./process.ts";

const script = join(root, "bin/genmesh.js");
const check = ["catalog", "check", "deploy/catalog.yaml"];
const verdict = /^deploy\/catalog\.yaml: \d+ models, no faults\n$/;

describe("bin/genmesh.js", () => {
  test("runs the command and passes its exit code on", async () => {
    expect(await run(process.execPath, [script, ...check])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(verdict),
      stderr: "",
    });
    expect((await run(process.execPath, [script, "catalog", "check", "no-such-file"])).code).toBe(
      1,
    );
    expect((await run(process.execPath, [script, "no-such-command"])).code).toBe(2);
  });

  test("a variable that makes no sense is told in one line", async () => {
    const env = { GENMESH_ADMIN_TOKEN: "short" };
    const { code, stderr } = await run(process.execPath, [script, ...check], env);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^genmesh: GENMESH_ADMIN_TOKEN must be .+\n$/);
  });

  test("works from a shell whose own Node is older", async ({ skip }) => {
    const older = nodes().find(({ major }) => major < 24);
    if (!older) skip("needs a Node older than 24 on the PATH");
    if (!existsSync(join(root, "node_modules/node/bin/node"))) skip("the pinned Node is not here");
    const { code, stdout } = await run(older?.file ?? "", [script, ...check]);
    expect(code).toBe(0);
    expect(stdout).toMatch(verdict);
  });
});

describe("npx genmesh in a clone", () => {
  test("is bin/genmesh.js, and needs no network", async ({ skip }) => {
    const npx = onPath("npx");
    if (!npx) skip("needs npx on the PATH");
    await using cache = await tempFolder();
    const { code, stdout, stderr } = await run(npx ?? "", ["genmesh", ...check], {
      npm_config_cache: cache.path,
      // No server is at port 1, so every download fails.
      npm_config_registry: "http://127.0.0.1:1/",
      npm_config_fetch_retries: "0",
    });
    expect({ code, stdout, stderr }).toMatchObject({ code: 0 });
    expect(stdout).toMatch(verdict);
  });
});

async function run(file: string, args: readonly string[], env: Variables = {}) {
  await using child = startProcess(file, args, { env });
  const { code } = await child.ended;
  return { code, stdout: child.stdout(), stderr: child.stderr() };
}

function folders(): string[] {
  return (process.env.PATH ?? "").split(delimiter);
}

function onPath(name: string): string | undefined {
  return folders()
    .map((folder) => join(folder, name))
    .find((file) => existsSync(file));
}

/** Every Node on the PATH, with its major version. */
function nodes(): { file: string; major: number }[] {
  return folders()
    .map((folder) => join(folder, "node"))
    .filter((file) => existsSync(file))
    .map((file) => {
      const { stdout } = spawnSync(file, ["--version"], { encoding: "utf8" });
      return { file, major: Number(/^v(\d+)/.exec(stdout)?.[1] ?? Number.NaN) };
    });
}
