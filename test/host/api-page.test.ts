import { readFileSync } from "node:fs";
import { join } from "node:path";
import OpenAI from "openai";
import { afterAll, beforeAll, expect, test } from "vitest";
import { committedDescription } from "../../gateway/openapi.ts";
import { type RunningMesh, root, startProcess, startRunning, tempFolder } from "./process.ts";

// What README.md and docs/api.md say to do is done here, against what `npm start` starts.

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
const shellBlocks = (page: string) =>
  [...page.matchAll(/```sh\n(.*?)```/gs)].map(([, block = ""]) => block);

/** Runs lines of a page in a shell that stops at the first call that is refused; each answer is a line of what it prints. */
async function run(lines: string, variables: Record<string, string>): Promise<string> {
  const genmesh = `node ${join(root, "bin/genmesh.js")} --server ${mesh.grpcAddress}`;
  const script = [
    "set -euo pipefail",
    `curl() { command curl -sS --fail-with-body -w '\\n' "$@"; }`,
    `npx() { shift; ${genmesh} "$@"; }`,
    lines.replaceAll("http://127.0.0.1:8080/v1", mesh.baseUrl),
  ].join("\n");
  const env = { ...variables, GENMESH_DATA_DIR: join(folder.path, "state") };
  await using shell = startProcess("bash", ["-c", script], { cwd: folder.path, env });
  const { code } = await shell.ended;
  const told = { code, stderr: shell.stderr(), stdout: shell.stdout() };
  expect(told).toMatchObject({ code: 0, stderr: "" });
  return shell.stdout();
}

/** A call's method and path: ids are `{}`, films and songs are as images are. */
function callOf(line: string): string | undefined {
  const [, url] = /\$API(\/\S*)/.exec(line) ?? [];
  if (!line.includes("curl ") || url === undefined) return undefined;
  const [, named] = / -X ([A-Z]+)/.exec(line) ?? [];
  const isSent = / (?:--json|-F) /.test(line);
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
  // What has a gap to be filled in is not for a shell.
  const whole = lines.filter((line) => !line.includes("…")).join("\n");
  const stdout = await run(whole, { API: mesh.baseUrl, OWNER: ownerKey });
  expect(stdout).toMatch(/"object":"response.input_tokens"/);
  expect(stdout.trim().split("\n").at(-1)).toMatch(/^\{"deleted":true,"id":"key_/);
});

test("a key as README.md has it: made, used, limited, seen, rotated, revoked", async () => {
  const [, section = ""] =
    /^## A key for an application\n(.*?)^## /ms.exec(read("README.md")) ?? [];
  const [making = "", managing = ""] = shellBlocks(section);
  const variables = { KEY: ownerKey };
  const printed = await run(`${making}\necho $APP_KEY $ID`, variables);
  const [APP_KEY = "", ID = ""] = printed.trim().split(" ");

  const client = new OpenAI({ baseURL: mesh.baseUrl, apiKey: APP_KEY, maxRetries: 0 });
  const { usage } = await client.responses.create({ model: "chat-1", input: "Hello" });
  const { costUsdMicros } = usage as unknown as { costUsdMicros: number };
  expect(costUsdMicros).toBeGreaterThan(0);

  const setup = making.split("\n").filter((line) => line.startsWith("export API"));
  const told = await run([...setup, managing].join("\n"), { ...variables, APP_KEY, ID });
  const [limited = "", used = "", rotated = "", revoked = "", audit] = told.trim().split("\n");
  expect(JSON.parse(limited).data).toMatchObject({
    spentUsdMicros: costUsdMicros,
    limitRemainingUsdMicros: JSON.parse(limited).data.limitUsdMicros - costUsdMicros,
  });
  const results = JSON.parse(used).data.flatMap((one: { results: object[] }) => one.results);
  expect(results.find((one: { api_key_id: string }) => one.api_key_id === ID)).toMatchObject({
    num_model_requests: 1,
    spentUsdMicros: costUsdMicros,
  });
  expect(JSON.parse(rotated).key).toMatch(/^gm_/);
  expect(JSON.parse(revoked)).toEqual({ deleted: true, id: ID });
  expect(audit).toMatch(/the books agree$/);
});
