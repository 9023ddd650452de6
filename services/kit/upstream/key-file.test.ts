import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readKeyFile, readPemFile } from "./key-file.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "genmesh-keys-"));
});
afterEach(() => rm(folder, { recursive: true }));

const at = (...names: string[]) => join(folder, ...names);

test("a file that takes the place of another one counts from then on", async () => {
  await writeFile(at("key"), "first\n");
  expect(await readKeyFile(at("key"))).toBe("first");
  await writeFile(at("key.new"), "second\n");
  await rename(at("key.new"), at("key"));
  expect(await readKeyFile(at("key"))).toBe("second");
});

/** Puts a version of a Secret into its folder as the kubelet does: a new folder, and a link to it that takes the old link's place. */
async function mount(version: string, key: string): Promise<void> {
  await mkdir(at(version));
  await writeFile(at(version, "key"), key);
  await symlink(version, at("..data_tmp"));
  await rename(at("..data_tmp"), at("..data"));
}

test("a mounted Secret that is swapped while it is read gives the old key or the new one", async () => {
  await mount("..v0", "key-0");
  await symlink(join("..data", "key"), at("key"));
  const swaps = 200;
  for (let version = 1; version <= swaps; version++) {
    const reading = Array.from({ length: 4 }, () => readKeyFile(at("key")));
    await mount(`..v${version}`, `key-${version}`);
    const allowed = [`key-${version - 1}`, `key-${version}`];
    for (const key of await Promise.all(reading)) expect(allowed).toContain(key);
    expect(await readKeyFile(at("key"))).toBe(`key-${version}`);
    await rm(at(`..v${version - 1}`), { recursive: true });
  }
});

test.each([
  ["is empty", " \n"],
  ["has two lines", "one\ntwo"],
  ["has a character that no header carries", "k\u0000y"],
  ["is longer than a header may be", "k".repeat(8 * 1024 + 1)],
])("there is no key in a file that %s", async (_, text) => {
  await writeFile(at("key"), text);
  expect(await readKeyFile(at("key"))).toBeUndefined();
});

test("there is no key where there is no file, or a folder", async () => {
  expect(await readKeyFile(at("nothing"))).toBeUndefined();
  expect(await readKeyFile(folder)).toBeUndefined();
});

test("a key in PEM has several lines, and only its own reading takes it", async () => {
  const pem = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIA==\n-----END PRIVATE KEY-----";
  await writeFile(at("pem"), `${pem}\n`);
  expect(await readPemFile(at("pem"))).toBe(pem);
  expect(await readKeyFile(at("pem"))).toBeUndefined();
  await writeFile(at("pem"), "first\n");
  expect(await readPemFile(at("pem"))).toBeUndefined();
});
