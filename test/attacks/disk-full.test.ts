import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type RunningMesh, startRunning, tempFolder } from "../host/process.ts";
import { until } from "../support/until.ts";

let folder: Awaited<ReturnType<typeof tempFolder>>;
/** A file system of 24 MiB. */
let small: string;
let whyNot: string | undefined;

beforeEach(async () => {
  folder = await tempFolder();
  small = join(folder.path, "small");
  mkdirSync(small);
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=24m", "tmpfs", small], { stdio: "pipe" });
    whyNot = undefined;
  } catch (error) {
    whyNot = `a small file system cannot be mounted here: ${(error as Error).message.split("\n")[1]}`;
  }
});
afterEach(async () => {
  if (whyNot === undefined) execFileSync("umount", ["--lazy", small]);
  await folder[Symbol.asyncDispose]();
});

const patience = { withinMs: 20_000, everyMs: 50 };

async function readiness(mesh: RunningMesh): Promise<string> {
  const answer = await fetch(`${mesh.origin}/readyz`);
  return `${answer.status} ${(await answer.text()).trim()}`;
}

/** Writes until nothing fits any more; answers what frees the room again. */
async function fill(): Promise<() => Promise<void>> {
  const filler = join(small, "filler");
  const full = writeFile(filler, Buffer.alloc(64 * 1024 * 1024));
  await expect(full).rejects.toMatchObject({ code: "ENOSPC" });
  return () => rm(filler);
}

async function think(mesh: RunningMesh): Promise<number> {
  const answer = await fetch(`${mesh.baseUrl}/responses`, {
    method: "POST",
    headers: { authorization: `Bearer ${mesh.bannerKey}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "chat-1", input: "Hello" }),
  });
  await answer.arrayBuffer();
  return answer.status;
}

async function draw(mesh: RunningMesh): Promise<number> {
  const answer = await fetch(`${mesh.baseUrl}/images/generations`, {
    method: "POST",
    headers: { authorization: `Bearer ${mesh.bannerKey}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "image-1", prompt: "a square" }),
  });
  await answer.arrayBuffer();
  return answer.status;
}

test.for([
  ["all data", (at: string) => ({ GENMESH_DATA_DIR: join(at, "data") }), think],
  ["files", (at: string) => ({ GENMESH_BLOBS_URL: `file:${join(at, "blobs")}` }), draw],
] as const)(
  "a full disk of %s: not ready, one line in the log, and ready again with room",
  { timeout: 120_000 },
  async ([, env, ask], { skip }) => {
    if (whyNot !== undefined) skip(whyNot);
    await using mesh = await startRunning({
      GENMESH_DATA_DIR: join(folder.path, "data"),
      ...env(small),
    });
    expect(await readiness(mesh)).toBe("200 ready");
    expect(await ask(mesh)).toBeLessThan(300);
    const free = await fill();
    const statuses = await Promise.all(Array.from({ length: 30 }, () => ask(mesh)));
    for (const status of statuses) expect([200, 202, 503]).toContain(status);
    await until(
      "it is not ready",
      async () => (await readiness(mesh)) === "503 the disk takes no writes",
      patience,
    );
    for (let round = 0; round < 30; round++) await ask(mesh);
    const faults = mesh
      .stderr()
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line))
      .filter(({ level }) => level > 30);
    expect(faults).toMatchObject([{ level: 50, err: { code: "ENOSPC" } }]);
    expect(faults[0].store).toMatch(/^disk/);
    await free();
    await until("it is ready", async () => (await readiness(mesh)) === "200 ready", patience);
    expect(await ask(mesh)).toBeLessThan(300);
  },
);
