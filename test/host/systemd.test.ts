import { spawnSync } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { runOperatorCommand } from "../support/operator-command.ts";
import { root, startProcess } from "./process.ts";

const stack = new AsyncDisposableStack();
afterAll(() => stack.disposeAsync());
/** Has the units of `deploy/systemd`, with this clone and folders of this test in place of the machine's. */
let folder: string;
let units: string[];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "genmesh-systemd-"));
  stack.defer(() => rm(folder, { recursive: true }));
  units = await readdir(join(root, "deploy/systemd"));
  for (const name of units) await writeFile(join(folder, name), await unitText(name));
});

async function unitText(name: string): Promise<string> {
  const text = await readFile(join(root, "deploy/systemd", name), "utf8");
  return text
    .replaceAll("/opt/genmesh/", root)
    .replaceAll("/opt/genmesh", root)
    .replaceAll(/\/var\/(?:lib|cache)\/genmesh/g, join(folder, "var"));
}

/** The values of a unit's setting, in their order. */
async function valuesOf(name: string, setting: string): Promise<string[]> {
  const lines = (await unitText(name)).split("\n");
  return lines.flatMap((line) =>
    line.startsWith(`${setting}=`) ? [line.slice(setting.length + 1)] : [],
  );
}

/** A unit's variables. */
async function variablesOf(name: string): Promise<Record<string, string>> {
  const pairs = (await valuesOf(name, "Environment")).join(" ").split(" ");
  return Object.fromEntries(pairs.map((pair) => pair.split("=")));
}

const hasAnalyze = spawnSync("systemd-analyze", ["--version"]).status === 0;
const analyze = (...args: string[]) =>
  spawnSync("systemd-analyze", args, { encoding: "utf8", env: { PATH: process.env.PATH } });
/** Tenths of the exposure that `systemd-analyze security` finds. A service without any protection has 96. */
const mostExposure = 20;

describe.skipIf(!hasAnalyze)("systemd-analyze", () => {
  test("finds nothing wrong with the units", () => {
    const { status, stderr } = analyze("verify", ...units.map((name) => join(folder, name)));
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  });

  test.each(["genmesh.service", "genmesh-backup.service"])("finds %s closed", (name) => {
    const args = ["--offline=true", `--threshold=${mostExposure}`, join(folder, name)];
    expect(analyze("security", ...args).status).toBe(0);
  });
});

test("the service runs what `npm start` runs", async () => {
  const { scripts } = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
  const [, settings = "", words = ""] =
    /^exec env ((?:\w+=\d+ )+)node (.+)$/.exec(scripts.start) ?? [];
  const [started = ""] = await valuesOf("genmesh.service", "ExecStart");
  expect(started.split(" ").slice(1).join(" ")).toBe(words);
  const wanted = Object.fromEntries(
    settings
      .trim()
      .split(" ")
      .map((pair) => pair.split("=")),
  );
  expect(await variablesOf("genmesh.service")).toMatchObject(wanted);
});

test("the service serves and stops, and a backup of it by its unit can be restored", async () => {
  const [start = ""] = await valuesOf("genmesh.service", "ExecStart");
  const [node = "", ...words] = start.split(" ");
  const ports = { PORT: "0", GRPC_PORT: "0", GENMESH_OPS_PORT: "0" };
  await using service = startProcess(node, words, {
    env: { ...ports, ...(await variablesOf("genmesh.service")) },
  });
  await service.says(/^genmesh is ready: /);

  const [line = ""] = await valuesOf("genmesh-backup.service", "ExecStart");
  const [, script = ""] = /^\/bin\/sh -c '(.+)'$/.exec(line) ?? [];
  const [before = ""] = await valuesOf("genmesh-backup.service", "ExecStartPre");
  const backups = join(folder, "var/backups");
  expect(before).toBe(`/bin/mkdir -p ${backups}`);
  await mkdir(backups);
  await using backup = startProcess(
    "/bin/sh",
    ["-c", script.replaceAll("%%", "%").replaceAll("$$", "$")],
    { env: await variablesOf("genmesh-backup.service") },
  );
  expect(await backup.ended).toEqual({ code: 0, signal: null });
  service.kill("SIGTERM");
  expect(await service.ended).toEqual({ code: 0, signal: null });

  const [name = ""] = await readdir(backups);
  expect(name).toMatch(/^20\d\d-\d\d-\d\dT\d{6}Z$/);
  const env = { GENMESH_DATA_DIR: join(folder, "restored") };
  const { code } = await runOperatorCommand(["restore", join(backups, name)], env);
  expect(code).toBe(0);
  expect((await stat(join(folder, "restored/genmesh.sqlite"))).size).toBeGreaterThan(0);
});
