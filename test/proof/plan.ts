import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import type { Check } from "./check.ts";
import type { Suite } from "./suite.ts";

/** What a proof runs, and how long each part may take: some six times of what it takes on two quiet cores. */
export type Part = Check | Suite;

const minute = 60;

const check = (name: string, ...command: [string, ...string[]]): Check => ({
  name,
  command,
  limitSeconds: 4 * minute,
});

/** Quick looks at the tree. */
export const checks: readonly Part[] = [
  check("lint", "npm", "run", "--silent", "lint"),
  check("types", "npm", "run", "--silent", "types"),
  unchanged("generated code", "generate", "proto/gen"),
  unchanged("openapi", "openapi", "gateway/openapi.json docs/errors.md"),
  ...compatible(),
];

function unchanged(name: string, npmScript: string, files: string): Check {
  return check(
    name,
    "sh",
    "-c",
    `npm run --silent ${npmScript} && git diff --exit-code -- ${files}`,
  );
}

/** Against main as it was half a day ago: a clone of main cannot tell what is new in it. A new repository has no such commit. */
function compatible(): Check[] {
  const git = (...args: string[]) => execFileSync("git", args, { encoding: "utf8" }).trim();
  const base = git("rev-list", "-1", "--before=12 hours ago", "HEAD");
  if (base === "" || git("ls-tree", base, "proto") === "") return [];
  return [
    check("protocol stays compatible", "npx", "buf", "breaking", "--against", `.git#ref=${base}`),
  ];
}

const vitest = (project: string, ...args: string[]): Suite["command"] => [
  "node_modules/.bin/vitest",
  "run",
  "--project",
  project,
  ...args,
];

/** The README's test command. */
export const main: Suite = {
  name: "tests",
  command: ["npm", "test"],
  project: "main",
  limitSeconds: 25 * minute,
};

/** What callers do to be charged less, to read what is not theirs, or to stop others. */
export const attacks: Suite = {
  name: "attacks",
  command: vitest("attacks"),
  project: "attacks",
  limitSeconds: 30 * minute,
};

/** The console in Chromium. */
export const browser: Suite = {
  name: "in a browser",
  command: vitest("browser"),
  project: "browser",
  limitSeconds: 20 * minute,
};

/** Both adapters of each store, and what else needs one server. */
export const contracts: Suite = {
  name: "contracts on real servers",
  command: vitest("main", "mongo", "jetstream", "blobs.s3", "stores.tls", "test/host/m"),
  project: "main",
  limitSeconds: 15 * minute,
};

/**
 * End-to-end tests that run in one process alone, in the main suite: what they look at is decided within one role, by the same code in
 * both forms (how a body is read and translated, what a number of tokens costs, a protocol's driver), or it is about one process.
 */
const sameOnAMesh = [
  "called",
  "comfyui",
  "context",
  "crash",
  "developer-prompt",
  "elevenlabs",
  "embeddings",
  "errors",
  "file-costs",
  "file-parts",
  "images",
  "media-fallbacks",
  "media-list",
  "media-references",
  "media-restart",
  "media-validation",
  "money-counted",
  "money-reported",
  "opaque-state",
  "reasoning",
  "refused-parameters",
  "telemetry-proxy",
  "transcriptions",
  "two-deployments",
  "usage-crashes",
  "validation",
];

function acrossRoles(): string[] {
  const files = readdirSync("test/e2e").filter((file) => file.endsWith(".test.ts"));
  const left = new Set(sameOnAMesh.map((name) => `${name}.test.ts`));
  return files.filter((file) => !left.has(file)).map((file) => `test/e2e/${file}`);
}

/** What crosses roles, on a process a role and two gateways; two meshes at a time. */
export const endToEnd: Suite = {
  name: "end to end on a mesh",
  command: vitest("main", "--maxWorkers", "2", ...acrossRoles()),
  project: "main",
  env: { GENMESH_TEST_MESH: "1,gateway=2" },
  limitSeconds: 30 * minute,
};

/** Replicas of every role, which are killed, paused and restarted, and their servers. */
export const replicas: Suite = {
  name: "replicas and faults",
  command: vitest("mesh"),
  project: "mesh",
  limitSeconds: 25 * minute,
};

/** On SQLite and a folder, and on the servers where there are any. */
export const crashes: Suite = {
  name: "crashes",
  command: vitest("faults"),
  project: "faults",
  limitSeconds: 25 * minute,
};

/** With both majors of Helm. */
export const charts: Suite = {
  name: "charts",
  command: vitest("main", "test/charts"),
  project: "main",
  limitSeconds: 5 * minute,
};

/** The charts on a cluster of this machine: ten minutes and more, so that it is asked for. */
export const cluster: Check = {
  name: "charts on a cluster",
  command: ["npm", "run", "--silent", "test:cluster"],
  limitSeconds: 25 * minute,
};
