import { spawn } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import { root, tempFolder } from "./process.ts";
import { type HostWorld, runCommand, startHostWorld } from "./world.ts";

let world: HostWorld;
// No variable names a catalog or a secret: versions are in the store, and the secret is made.
beforeAll(async () => {
  world = await startHostWorld();
});
afterAll(() => world[Symbol.asyncDispose]());

const genmesh = (...args: string[]) => runCommand(world, args);
const key = "sk-of-the-command-0123456789";

test("a key is stored from a file, listed without its value, replaced and deleted", async () => {
  await using folder = await tempFolder();
  const file = join(folder.path, "key.txt");
  await writeFile(file, `${key}\n`);
  expect((await genmesh("catalog", "keys")).out).toBe("no stored keys\n");
  const set = await genmesh("catalog", "set-key", "fal", "--key-file", file);
  expect(set).toMatchObject({ code: 0, err: "" });
  expect(set.out).toMatch(/^The key fal is stored\./);
  const again = await genmesh("catalog", "set-key", "fal", "--key-file", file, "--json");
  expect(JSON.parse(again.out)).toMatchObject({ name: "fal", hint: "6789", upstreams: [] });
  const listed = await genmesh("catalog", "keys");
  expect(listed.out).toMatch(/fal +6789 .*command of /);
  expect((await genmesh("catalog", "delete-key", "fal")).out).toBe("The key fal is deleted.\n");
  const gone = await genmesh("catalog", "delete-key", "fal");
  expect(gone.code).toBe(1);
  const audit = await genmesh("audit", "list", "--json");
  const { actions } = JSON.parse(audit.out);
  expect(actions.slice(0, 4)).toMatchObject([
    { action: "catalog.delete_key", target: "fal", outcome: "refused" },
    { action: "catalog.delete_key", target: "fal", outcome: "done" },
    { action: "catalog.set_key", target: "fal", outcome: "done" },
    { action: "catalog.set_key", target: "fal", outcome: "done" },
  ]);
  for (const { out, err } of [set, again, listed, audit]) expect(out + err).not.toContain(key);
});

test("a key in the place of a name is refused without a copy in the error or the audit log", async () => {
  await using folder = await tempFolder();
  const file = join(folder.path, "key.txt");
  await writeFile(file, key);
  for (const rest of [
    ["set-key", key.toUpperCase(), "--key-file", file],
    ["delete-key", key.toUpperCase()],
  ]) {
    const { code, out, err } = await genmesh("catalog", ...rest);
    expect(code).not.toBe(0);
    expect(err).toContain("name of a key");
    expect(out + err).not.toContain(key.toUpperCase());
  }
  expect((await genmesh("audit", "list", "--json")).out).not.toContain(key.toUpperCase());
});

test("a key comes from standard input too, where that is a socket", async () => {
  const args = ["catalog", "set-key", "piped", "--key-file", "-", "--server"];
  const env = { PATH: process.env.PATH, GENMESH_DATA_DIR: world.dataDir };
  const all = ["services/host/cli/main.ts", ...args, world.mesh.grpcAddress];
  // Node's pipes to a child are sockets, which no path opens.
  const child = spawn(process.execPath, all, { cwd: root, env, stdio: ["pipe", "pipe", "pipe"] });
  child.stdin.end(`${key}\n`);
  expect(await text(child.stdout)).toMatch(/^The key piped is stored\./);
  const listed = JSON.parse((await genmesh("catalog", "keys", "--json")).out);
  expect(listed.keys).toMatchObject([{ name: "piped", hint: "6789" }]);
});
