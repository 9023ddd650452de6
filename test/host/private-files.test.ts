import { chmod, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { noise } from "#kit/images/samples.fixture.ts";
import { freePort } from "../support/free-port.ts";
import { root, startProcess, type TestProcess, tempFolder } from "./process.ts";

let folder: Awaited<ReturnType<typeof tempFolder>>;
let dataDir: string;

beforeAll(async () => {
  folder = await tempFolder();
  dataDir = join(folder.path, "made", "data");
});
afterAll(() => folder[Symbol.asyncDispose]());

/** Starts a process like a shell with `umask 0`, uses it so that it writes its files, and ends it. */
async function useOpenHanded(work: (host: TestProcess) => Promise<void>): Promise<string> {
  const main = join(root, "services/host/main.ts");
  await using host = startProcess("sh", ["-c", 'umask 0; exec "$0" "$@"', process.execPath, main], {
    env: {
      ...{ PORT: "0", GRPC_PORT: `${await freePort()}`, GENMESH_OPS_PORT: "0" },
      GENMESH_DATA_DIR: dataDir,
    },
  });
  await work(host);
  return host.stderr();
}

let key = "";
async function upload(host: TestProcess): Promise<void> {
  const [, baseUrl, shown] = await host.says(/is ready: (\S+)(?: {2}key: (\S+))?\n/);
  key = shown ?? key;
  const form = new FormData();
  form.set("purpose", "vision");
  form.set("file", new Blob([await noise().png().toBuffer()]), "noise.png");
  const headers = { authorization: `Bearer ${key}` };
  const answer = await fetch(`${baseUrl}/files`, { method: "POST", body: form, headers });
  expect(answer.status).toBe(200);
}

async function open(path: string): Promise<string[]> {
  const found: string[] = [];
  for (const entry of ["", ...(await readdir(path, { recursive: true }))]) {
    const { mode } = await stat(join(path, entry));
    if ((mode & 0o077) !== 0) found.push(entry);
  }
  return found;
}

test("what it makes is for its user alone, under any umask", async () => {
  const log = await useOpenHanded(async (host) => {
    await upload(host);
    expect(await open(dataDir)).toEqual([]);
    const names = await readdir(dataDir);
    expect(names).toEqual(expect.arrayContaining(["genmesh.sqlite-wal", "genmesh.sqlite-shm"]));
  });
  expect(log).not.toContain("data directory");
});

test("what was open before is closed at the start; of the folder itself its owner is told", async () => {
  for (const entry of ["", ...(await readdir(dataDir, { recursive: true }))]) {
    const path = join(dataDir, entry);
    await chmod(path, (await stat(path)).isDirectory() ? 0o755 : 0o644);
  }
  const log = await useOpenHanded(async (host) => {
    await upload(host);
    expect(await open(dataDir)).toEqual([""]);
  });
  expect(log.match(/data directory/g)).toHaveLength(1);
});
