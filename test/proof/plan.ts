import { execFileSync } from "node:child_process";
import type { Check } from "./check.ts";
import type { Suite } from "./suite.ts";

/** The parts of a proof, and the time limit of each: six times its duration on two quiet cores. */
export type Part = Check | Suite;

const minute = 60;

/** Does all of this part need real servers? */
export function needsServers(part: Part): boolean {
  return "needsServers" in part && part.needsServers === true;
}

const check = (name: string, ...command: [string, ...string[]]): Check => ({
  name,
  command,
  limitSeconds: 4 * minute,
});

/** Quick checks of the tree that only read it. */
export const looks: readonly Check[] = [
  check("lint", "npm", "run", "--silent", "lint"),
  check("types", "npm", "run", "--silent", "types"),
];

/** Checks that write into the tree, or ask git for changes. */
export const checks: readonly Check[] = [
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

/** Compares with the commit of a day ago, because a clone of main alone cannot show new changes. A new repository has no such commit. */
function compatible(): Check[] {
  const git = (...args: string[]) => execFileSync("git", args, { encoding: "utf8" }).trim();
  const base = git("rev-list", "-1", "--before=1 day ago", "HEAD");
  if (base === "" || git("ls-tree", base, "proto") === "") return [];
  return [
    check("protocol stays compatible", "npx", "buf", "breaking", "--against", `.git#ref=${base}`),
  ];
}

/** The README's test command. */
export const main: Suite = {
  name: "tests",
  script: "test",
  projects: ["main"],
  limitSeconds: 20 * minute,
};

/**
 * A machine is slow where the main tests take longer than this, in seconds. Two quiet cores take half of it. On a slow machine
 * parts run one after the other, because requests of two suites at once pass their time limits there.
 */
export const slowMainSeconds = 5 * minute;

/** Other tests that need only the install. They render, start processes or wait. */
const long: Suite = {
  name: "long tests",
  script: "test:long",
  projects: ["long"],
  limitSeconds: 40 * minute,
};

/** Attempts to be charged less, to read others' data, or to stop others. */
const attacks: Suite = {
  name: "attacks",
  script: "test:attacks",
  projects: ["attacks"],
  limitSeconds: 55 * minute,
};

/** The console in Chromium. */
const browser: Suite = {
  name: "in a browser",
  script: "test:browser",
  projects: ["browser"],
  limitSeconds: 25 * minute,
};

/** Both adapters of each store: the embedded one, and a server's where there is one. */
export const contracts: Suite = {
  name: "contracts of the stores",
  script: "test:contracts",
  projects: ["contracts"],
  limitSeconds: 13 * minute,
};

/** Whole services on servers, several processes at one store, servers that are away. */
const longContracts: Suite = {
  name: "contracts, long",
  script: "test:contracts:long",
  projects: ["contracts-long"],
  limitSeconds: 40 * minute,
};

/** Tests across roles, each in a process of its own with two gateways, over the network. */
export const endToEnd: Suite = {
  name: "end to end on a mesh",
  script: "test:roles",
  projects: ["roles"],
  env: { GENMESH_TEST_MESH: "1,gateway=2" },
  needsServers: true,
  limitSeconds: 25 * minute,
};

/** The operator's days, settings, webhooks and outputs of the built-in models, on a mesh. */
const longEndToEnd: Suite = {
  name: "end to end on a mesh, long",
  script: "test:roles:long",
  projects: ["roles-long"],
  env: { GENMESH_TEST_MESH: "1,gateway=2" },
  needsServers: true,
  limitSeconds: 30 * minute,
};

/** Replicas of every role and their servers, which are killed, paused and restarted. */
export const replicas: Suite = {
  name: "replicas and faults",
  script: "test:mesh",
  projects: ["mesh"],
  needsServers: true,
  limitSeconds: 25 * minute,
};

/** A day with the console on a mesh, a key by the README, upgrades under load, large answers, wrong clocks, certificates. */
const longReplicas: Suite = {
  name: "replicas, long",
  script: "test:mesh:long",
  projects: ["mesh-long"],
  needsServers: true,
  limitSeconds: 35 * minute,
};

/** On SQLite and a folder at every step. On servers and at other upstreams at the steps where those decide. */
export const crashes: Suite = {
  name: "crashes",
  script: "test:faults",
  projects: ["faults"],
  limitSeconds: 25 * minute,
};

/** At every step everywhere. */
const crashesEverywhere: Suite = {
  name: "crashes at every step",
  script: "faults:all",
  projects: ["faults"],
  env: { GENMESH_TEST_STEPS: "all" },
  limitSeconds: 45 * minute,
};

/** The tests of the main suite that render the charts, with both majors of Helm. */
export const charts: Suite = {
  name: "charts",
  script: "test:charts",
  projects: ["main"],
  limitSeconds: 5 * minute,
};

/** The charts on a cluster of this machine. */
const cluster: Check = {
  name: "charts on a cluster",
  command: ["npm", "run", "--silent", "test:cluster"],
  limitSeconds: 25 * minute,
};

/**
 * Parts that run by a variable. They take more than three minutes and check code that seldom changes. All run before a release, and each
 * when its own code changes: docs/decisions/proof.md.
 */
export const asked = {
  GENMESH_CI_ALL: [
    ...[long, attacks, browser, longContracts],
    ...[longEndToEnd, longReplicas, crashesEverywhere],
  ],
  GENMESH_CI_CLUSTER: [cluster],
} as const satisfies Record<string, readonly Part[]>;
