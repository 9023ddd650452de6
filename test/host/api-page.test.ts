import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { committedDescription } from "../../gateway/openapi.ts";
import { type RunningMesh, root, startRunning, tempFolder } from "./process.ts";
import { aKeyAsTheReadmeHasIt, runLines, shellBlocks } from "./readme-key.ts";

// Runs the commands of README.md and docs/api.md with the program of `npm start`.

type Folder = Awaited<ReturnType<typeof tempFolder>>;

let folder: Folder;
let mesh: RunningMesh;
const ownerKey = "gm_pages_0123456789abcdef";
beforeAll(async () => {
  folder = await tempFolder();
  mesh = await startRunning({
    GENMESH_DATA_DIR: join(folder.path, "state"),
    GENMESH_BOOTSTRAP_API_KEY: ownerKey,
    GENMESH_LOG_LEVEL: "warn",
  });
}, 60_000);
afterAll(async () => {
  await mesh?.[Symbol.asyncDispose]();
  await folder?.[Symbol.asyncDispose]();
});

const read = (file: string) => readFileSync(join(root, file), "utf8");

/** Runs lines on the server of all tests. */
const run = (lines: string, variables: Record<string, string>) =>
  runLines(
    {
      ...{ baseUrl: mesh.baseUrl, cwd: folder.path },
      operator: {
        env: { GENMESH_DATA_DIR: join(folder.path, "state") },
        words: `--server ${mesh.grpcAddress}`,
      },
    },
    lines,
    variables,
  );

/** A call's method and path. Ids become `{}`, and paths of videos and music those of images. */
function callOf(line: string): string | undefined {
  const [, url] = /\$API(\/\S*)/.exec(line) ?? [];
  if (!line.includes("curl ") || url === undefined) return undefined;
  const [, named] = / -X ([A-Z]+)/.exec(line) ?? [];
  const isSent = / (?:-H "\$JSON"|-F) /.test(line);
  return `${named ?? (isSent ? "POST" : "GET")} ${folded(url.replace(/[")].*$/, ""))}`;
}

const folded = (path: string) =>
  path
    .replace(/^\/models\/.+/, "/models/{}")
    .replaceAll(/\{\w+\}|\$\w+|…/g, "{}")
    .replace(/^\/(?:videos|music)\//, "/images/");

test("docs/api.md has a call for each route, and for no other", async () => {
  const { paths } = JSON.parse(await committedDescription());
  const routes = Object.entries<object>(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${folded(path)}`),
  );
  const lines = shellBlocks(read("docs/api.md")).join("").replaceAll("\\\n", " ").split("\n");
  const calls = lines.map(callOf).filter((call) => call !== undefined);
  expect([...new Set(calls)].sort()).toEqual([...new Set(routes)].sort());
});

test("the calls of docs/api.md work, one after another", { timeout: 300_000 }, async () => {
  const lines = shellBlocks(read("docs/api.md")).join("").split("\n");
  // Lines with a gap for the reader are left out. Those that make a typed client have a test of their own.
  const others = /…|^(?:npx openapi-typescript|openapi-python-client) |\/openapi\.json$/;
  const whole = lines.filter((line) => !others.test(line)).join("\n");
  const stdout = await run(whole, { API: mesh.baseUrl, OWNER: ownerKey });
  expect(stdout).toMatch(/"object":"response.input_tokens"/);
  expect(stdout.trim().split("\n").at(-1)).toMatch(/^\{"deleted":true,"id":"key_/);
});

test("a key as README.md has it: made, used, limited, seen, rotated, revoked; the audit has its figures", async () => {
  await using folder = await tempFolder();
  const state = { GENMESH_DATA_DIR: join(folder.path, "state") };
  await using fresh = await startRunning({ ...state, GENMESH_LOG_LEVEL: "warn" });
  await aKeyAsTheReadmeHasIt({
    ...{ baseUrl: fresh.baseUrl, key: fresh.bannerKey ?? "", cwd: folder.path },
    operator: { env: state, words: `--server ${fresh.grpcAddress}` },
  });
});
