import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { tempFolder } from "./process.ts";
import { type HostWorld, runCommand, startHostWorld } from "./world.ts";

let world: HostWorld;
// No variable names a catalog: versions in the store are the master.
beforeAll(async () => {
  world = await startHostWorld();
});
afterAll(() => world[Symbol.asyncDispose]());

const genmesh = (...args: string[]) => runCommand(world, args);

/** The JSON object of a call with `--json`, which must succeed. */
async function json(...args: string[]) {
  const { code, out, err } = await genmesh(...args, "--json");
  expect({ code, err }).toEqual({ code: 0, err: "" });
  return JSON.parse(out);
}

test("a catalog is shown, put in force, listed and rolled back", async () => {
  await using folder = await tempFolder();
  const file = join(folder.path, "catalog.yaml");
  const shown = await genmesh("catalog", "show");
  expect(shown.out).toContain("upstreams:");
  expect((await genmesh("catalog", "versions")).out).toBe("no versions: the file is in force\n");

  await writeFile(file, shown.out.replace("creditPrice: 5", "creditPrice: 6"));
  const put = await genmesh("catalog", "put", file, "--note", "dearer");
  expect(put).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^Version 1 is in force: \d+ models\.\n$/),
  });
  expect((await genmesh("catalog", "show")).out).toContain("creditPrice: 6");
  expect((await genmesh("catalog", "show", "--number", "0")).out).toBe(shown.out);

  const stale = await genmesh("catalog", "put", file, "--expect", "0");
  expect(stale.code).toBe(1);
  expect(stale.err).toContain("Another version of the catalog has come into force");
  const repeat = ["catalog", "roll-back", "0", "--expect", "1", "--operation-id", "back"];
  expect(await json(...repeat)).toMatchObject({ number: 2, replayed: false });
  expect(await json(...repeat)).toMatchObject({ number: 2, replayed: true });
  expect((await genmesh("catalog", "show")).out).toBe(shown.out);
  const { versions } = await json("catalog", "versions");
  expect(
    versions.map(({ number, note }: { number: number; note: string }) => [number, note]),
  ).toEqual([
    [2, null],
    [1, "dearer"],
    [0, null],
  ]);
  expect(versions[0].actor).toMatch(/^command of /);
  const { actions } = await json("audit", "list");
  expect(actions[0]).toMatchObject({ action: "catalog.roll_back", target: "version 2" });
});

test("a faulty catalog changes nothing, and says why", async () => {
  await using folder = await tempFolder();
  const file = join(folder.path, "catalog.yaml");
  await writeFile(file, "models: 7");
  const { newest } = await json("catalog", "show");
  const { code, err } = await genmesh("catalog", "put", file);
  expect(code).toBe(1);
  expect(err).toMatch(/^genmesh: The catalog has faults, and nothing was changed\. /);
  expect((await json("catalog", "show")).newest).toBe(newest);
  const { actions } = await json("audit", "list");
  expect(actions[0]).toMatchObject({ action: "catalog.put", outcome: "refused" });
});
