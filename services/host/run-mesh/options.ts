// Reads the arguments of `npm run mesh`.

import { parseArgs } from "node:util";
import { ConfigError } from "../env.ts";
import { meshRoles, type Replicas } from "./plan.ts";

/** The arguments of `npm run mesh`. */
export interface MeshArguments {
  replicas: Replicas;
  /** First of the ports for internal callers. 0: any. */
  internalPort: number;
}

/** Two of each, because one would hide faults. */
const defaultReplicas = 2;
const defaultInternalPort = 9100;
const [minReplicas, maxReplicas] = [1, 20];

/** Reads `--replicas N`, `--replicas ROLE=N` and `--internal-port P`. Throws ConfigError. */
export function readMeshArguments(args: readonly string[]): MeshArguments {
  const { values } = parseArgs({
    args: [...args],
    options: {
      replicas: { type: "string", multiple: true },
      "internal-port": { type: "string" },
    },
  });
  const counts = new Map<string, number>();
  for (const word of (values.replicas ?? []).flatMap((one) => one.split(","))) {
    const [, role = "all", count] = /^(?:([a-z-]+)=)?(\d{1,2})$/.exec(word) ?? [];
    const known = role === "all" || meshRoles.some((one) => one === role);
    const number = Number(count);
    if (!known || !(number >= minReplicas && number <= maxReplicas)) {
      throw new ConfigError(
        `--replicas must be N or ROLE=N, from ${minReplicas} to ${maxReplicas} of ${meshRoles.join(", ")} (it is "${word}")`,
      );
    }
    counts.set(role, number);
  }
  const usual = counts.get("all") ?? defaultReplicas;
  return {
    replicas: Object.fromEntries(
      meshRoles.map((role) => [role, counts.get(role) ?? usual]),
    ) as Record<(typeof meshRoles)[number], number>,
    internalPort: portOf(values["internal-port"]),
  };
}

function portOf(text: string | undefined): number {
  if (text === undefined) return defaultInternalPort;
  const port = Number(text);
  if (/^\d+$/.test(text) && port <= 65_535) return port;
  throw new ConfigError(`--internal-port must be a whole number from 0 to 65535 (it is "${text}")`);
}
