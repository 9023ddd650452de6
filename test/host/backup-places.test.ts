import { mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runOperatorCommand } from "../support/operator-command.ts";
import { tempFolder, type Variables } from "./process.ts";
import { runCommand, startHostWorld } from "./world.ts";

const stack = new AsyncDisposableStack();
afterAll(() => stack.disposeAsync());
/** The temporary folder of all tests. */
let folder: string;
/** Variables of a service whose stores lie outside its data directory, which has the database of an earlier time. */
let env: Variables & Record<"GENMESH_DATA_DIR", string>;

beforeAll(async () => {
  folder = stack.use(await tempFolder()).path;
  env = placesIn(join(folder, "install"));
  await using world = await startHostWorld(env);
  await runCommand(world, ["account", "create", "--name", "kept"], env);
  using old = new DatabaseSync(join(env.GENMESH_DATA_DIR, "genmesh.sqlite"));
  old.exec("CREATE TABLE old (a)");
});

/** Variables for stores in folders of their own. */
function placesIn(root: string) {
  return {
    GENMESH_DATA_DIR: join(root, "data"),
    GENMESH_DATABASE_URL: `sqlite:${join(root, "database/own.sqlite")}`,
    GENMESH_BLOBS_URL: `file:${join(root, "files")}`,
  };
}

const genmesh = (variables: Variables, ...words: string[]) => runOperatorCommand(words, variables);
const refused = (err: string) => ({ code: 1, out: "", err: `genmesh: ${err}\n` });

test("stores that lie elsewhere are copied, and no earlier database takes their place", async () => {
  const backup = join(folder, "elsewhere");
  expect((await genmesh(env, "backup", backup, "--json")).err).toBe("");
  expect((await readdir(backup)).sort()).toEqual([
    ...["admin-token", "blobs", "bootstrap-key", "genmesh.sqlite", "secrets-key"],
  ]);
  for (const places of [placesIn(join(folder, "again")), { GENMESH_DATA_DIR: join(folder, "x") }]) {
    expect((await genmesh(places, "restore", backup)).err).toBe("");
    await using world = await startHostWorld(places);
    const { out } = await runCommand(world, ["account", "list"], places);
    expect(out).toContain("kept");
    const token = join(places.GENMESH_DATA_DIR, "admin-token");
    expect(await readFile(token, "utf8")).toBe(await readFile(join(backup, "admin-token"), "utf8"));
  }
});

test("a place that cannot be a backup's is refused, and nothing changes", async () => {
  const { GENMESH_DATA_DIR: data } = env;
  const files = join(folder, "install/files");
  await symlink(data, join(folder, "way-in"));
  await mkdir(join(folder, "empty"));
  const names = await readdir(folder, { recursive: true });
  const inside = (path: string, own: string) =>
    `${path} lies in ${own}: a backup lies outside what it copies`;
  const taken = "is there already: a backup makes its folder";
  for (const [place, err] of [
    [join(data, "backup"), inside(join(data, "backup"), data)],
    [join(folder, "way-in/backup"), inside(join(data, "backup"), data)],
    [join(files, "backup"), inside(join(files, "backup"), files)],
    [join(folder, "empty"), `${join(folder, "empty")} ${taken}`],
    [data, `${data} ${taken}`],
    [join(folder, "missing/backup"), `there is no folder ${join(folder, "missing")}`],
  ] as const) {
    expect(await genmesh(env, "backup", place)).toEqual(refused(err));
  }
  expect(await readdir(folder, { recursive: true })).toEqual(names);
});

test("variables that name no embedded state are told so", async () => {
  const target = join(folder, "never");
  const other = { GENMESH_DATA_DIR: join(folder, "nowhere") };
  const { code, err } = await genmesh(other, "backup", target);
  expect({ code, err }).toEqual({
    code: 1,
    err: expect.stringContaining("there is no database"),
  });
  const noFiles = { ...env, GENMESH_BLOBS_URL: `file:${join(folder, "nowhere")}` };
  expect((await genmesh(noFiles, "backup", target)).err).toContain("there is no folder");
  const mongo = { ...env, GENMESH_DATABASE_URL: "mongodb://u:s3cret@127.0.0.1:1/x" };
  for (const word of ["backup", "restore"]) {
    const said = await genmesh(mongo, word, target);
    expect(said).toMatchObject({ code: 1, err: expect.stringContaining("docs/operations.md") });
    expect(said.err).not.toContain("s3cret");
  }
  expect(await readdir(folder)).not.toContain("never");
});

test("files in an S3 store are left to it, on both ways", async () => {
  const target = join(folder, "without-files");
  const s3 = { ...env, GENMESH_BLOBS_URL: "s3+http://access:secret@127.0.0.1:1/bucket" };
  const { code, out } = await genmesh(s3, "backup", target);
  expect({ code, out }).toEqual({ code: 0, out: expect.stringMatching(/^files +none: .*S3/m) });
  expect(await genmesh(placesIn(join(folder, "y")), "restore", target)).toEqual(
    refused(
      "the backup has no files, which were in an S3 store: set GENMESH_BLOBS_URL as the service had it",
    ),
  );
  expect(
    await genmesh(
      { ...placesIn(join(folder, "y")), GENMESH_BLOBS_URL: s3.GENMESH_BLOBS_URL },
      ...["restore", join(folder, "elsewhere")],
    ),
  ).toEqual(refused("the backup has files, and GENMESH_BLOBS_URL names an S3 store"));
  expect(await readdir(folder)).not.toContain("y");
});

test("a damaged database gives no backup, and a folder of others that looks unfinished stays", async () => {
  const root = join(folder, "damaged");
  const places = placesIn(root);
  for (const one of ["data", "files", "database"])
    await mkdir(join(root, one), { recursive: true });
  await writeFile(join(root, "database/own.sqlite"), "no database at all, but longer than nothing");
  await mkdir(join(folder, "other.unfinished-abcdef"));
  const { code, err } = await genmesh(places, "backup", join(folder, "other"));
  expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining("cannot be copied") });
  const left = (await readdir(folder)).filter((name) => name.startsWith("other"));
  expect(left).toEqual(["other.unfinished-abcdef"]);
});

test("a restore that breaks off leaves a folder that no process starts on", async () => {
  const backup = join(folder, "broken");
  expect((await genmesh(env, "backup", backup)).err).toBe("");
  await writeFile(join(backup, "genmesh.sqlite"), "damaged");
  const places = placesIn(join(folder, "half"));
  const { code, err } = await genmesh(places, "restore", backup);
  expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining("cannot be copied") });
  await expect(startHostWorld(places)).rejects.toThrow("has a restore that broke off");
  expect((await genmesh(places, "restore", backup)).err).toContain("has a restore that broke off");
});

test("a database or its log that lies elsewhere is not written over", async () => {
  const backup = join(folder, "elsewhere");
  for (const name of ["own.sqlite", "own.sqlite-wal"]) {
    const root = join(folder, `left-${name}`);
    const file = join(root, "database", name);
    await mkdir(join(root, "database"), { recursive: true });
    await writeFile(file, "left");
    expect(await genmesh(placesIn(root), "restore", backup)).toEqual(
      refused(`${file} has a state already: move it away, and restore again`),
    );
    expect(await readFile(file, "utf8")).toBe("left");
  }
});

test("what is no backup is not restored", async () => {
  const places = placesIn(join(folder, "z"));
  const { GENMESH_DATA_DIR: data } = env;
  await mkdir(join(folder, "no-backup"));
  expect(await genmesh(places, "restore", join(folder, "no-backup"))).toEqual(
    refused(`${join(folder, "no-backup")} is no backup: it has no genmesh.sqlite`),
  );
  expect(await readdir(folder)).not.toContain("z");
  expect(await readdir(data)).toContain("admin-token");
});
