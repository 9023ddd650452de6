import { execFileSync } from "node:child_process";
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

/** What needs the install and nothing else. */
export const withoutServers: readonly Part[] = [
  { name: "attacks", command: vitest("attacks"), project: "attacks", limitSeconds: 30 * minute },
  {
    name: "in a browser",
    command: vitest("browser"),
    project: "browser",
    limitSeconds: 20 * minute,
  },
];

/** What needs real servers; each row runs beside the other rows. */
export const onServers: readonly Part[] = [
  {
    name: "contracts on real servers",
    command: vitest("main", "mongo", "jetstream", "blobs.s3", "stores.tls", "test/host/m"),
    project: "main",
    limitSeconds: 15 * minute,
  },
  {
    name: "end to end on a mesh",
    command: vitest("main", "--maxWorkers", "1", "test/e2e"),
    project: "main",
    env: { GENMESH_TEST_MESH: "1,gateway=2" },
    limitSeconds: 40 * minute,
  },
  {
    name: "replicas and faults",
    command: vitest("mesh"),
    project: "mesh",
    limitSeconds: 25 * minute,
  },
];

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
