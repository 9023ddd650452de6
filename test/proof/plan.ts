import { execFileSync } from "node:child_process";
import type { Check } from "./check.ts";
import type { Suite } from "./suite.ts";

/** What a proof runs, and how long each part may take: six times what it takes on two quiet cores. */
export type Part = Check | Suite;

const minute = 60;

/** Is there nothing of it to run without real servers? */
export function needsServers(part: Part): boolean {
  return "needsServers" in part && part.needsServers === true;
}

const check = (name: string, ...command: [string, ...string[]]): Check => ({
  name,
  command,
  limitSeconds: 4 * minute,
});

/** Quick looks at the tree that only read it. */
export const looks: readonly Check[] = [
  check("lint", "npm", "run", "--silent", "lint"),
  check("types", "npm", "run", "--silent", "types"),
];

/** Those that write there, or ask git what was written. */
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

/** Against main as it was half a day ago: a clone of main cannot tell what is new in it. A new repository has no such commit. */
function compatible(): Check[] {
  const git = (...args: string[]) => execFileSync("git", args, { encoding: "utf8" }).trim();
  const base = git("rev-list", "-1", "--before=12 hours ago", "HEAD");
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

/** What else needs nothing but the install: what renders, starts processes or waits. */
const long: Suite = {
  name: "long tests",
  script: "test:long",
  projects: ["long"],
  limitSeconds: 40 * minute,
};

/** What callers do to be charged less, to read what is not theirs, or to stop others. */
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

/** Both adapters of each store: the embedded one, and that of a server where there is one. */
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

/** What crosses roles, each by itself and two gateways, over the wire. */
export const endToEnd: Suite = {
  name: "end to end on a mesh",
  script: "test:roles",
  projects: ["roles"],
  env: { GENMESH_TEST_MESH: "1,gateway=2" },
  needsServers: true,
  limitSeconds: 10 * minute,
};

/** The operator's days, settings, webhooks and what builtin makes, on a mesh. */
const longEndToEnd: Suite = {
  name: "end to end on a mesh, long",
  script: "test:roles:long",
  projects: ["roles-long"],
  env: { GENMESH_TEST_MESH: "1,gateway=2" },
  needsServers: true,
  limitSeconds: 30 * minute,
};

/** Replicas of every role, which are killed, paused and restarted, and their servers. */
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

/** On SQLite and a folder at every step, on the servers and at other upstreams where those tell what follows. */
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

/** Those tests of the main suite that render them, with both majors of Helm. */
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
 * By the variable that asks for it: what takes more than three minutes and looks at what a change seldom reaches. All of it runs before a
 * release, and each part where its own ground changes: docs/decisions/proof.md.
 */
export const asked = {
  GENMESH_CI_ALL: [
    ...[long, attacks, browser, longContracts],
    ...[longEndToEnd, longReplicas, crashesEverywhere],
  ],
  GENMESH_CI_CLUSTER: [cluster],
} as const satisfies Record<string, readonly Part[]>;
