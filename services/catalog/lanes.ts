// Resolves upstreams, pools and their keys to the lanes that a model's requests may take, and finds faults in them. A lane is an
// upstream with one of its keys.

import { eachValid, type FoundFault, whereValid } from "#kit/base/valid-parts.ts";
import type { CatalogFile, CatalogModel, CatalogUpstream } from "./schema.ts";

/** Keys of an upstream's entry that name its key. */
const keyPlaces = ["apiKeyEnv", "apiKeyEnvs", "apiKeyFile", "apiKeyStored"] as const;

/** Faults of the keys of upstreams, and of pools. */
export function laneFaults(file: CatalogFile): FoundFault[] {
  return [
    ...eachValid(Object.keys(file.upstreams), (name) => {
      const upstream: Partial<CatalogUpstream> = file.upstreams[name] ?? {};
      const [, ...others] = keyPlaces.filter((place) => upstream[place] !== undefined);
      const message = `an upstream has one of ${keyPlaces.join(", ")}`;
      return others.map((place) => ({ path: ["upstreams", name, place], message }));
    }),
    ...whereValid(() => Object.keys(file.pools)).flatMap((name) => poolFaults(file, name)),
  ];
}

function poolFaults(file: CatalogFile, name: string): FoundFault[] {
  const at = (...rest: (string | number)[]) => ["pools", name, ...rest];
  const protocolAt = (index: number) =>
    protocolOf(file, file.pools[name]?.members[index]?.upstream ?? "");
  const members = whereValid(() => file.pools[name]?.members ?? []);
  const ofMembers = eachValid(members, ({ upstream }, index) => {
    const path = at("members", index, "upstream");
    const [protocol, first] = [protocolOf(file, upstream), protocolAt(0)];
    if (!protocol) return [{ path, message: "names no entry of upstreams" }];
    if (members.findIndex((one) => one.upstream === upstream) < index) {
      return [{ path, message: "is in the pool already" }];
    }
    const message = `speaks ${protocol}, and the pool's first member ${first}`;
    return !first || protocol === first ? [] : [{ path, message }];
  });
  const ofNames = whereValid(() => {
    const known = new Set(members.map(({ upstream }) => upstream));
    const strange = Object.keys(file.pools[name]?.upstreamModels ?? {}).filter(
      (one) => !known.has(one),
    );
    const message = "is no member of the pool";
    return strange.map((one) => ({ path: at("upstreamModels", one), message }));
  });
  const isTaken = Object.hasOwn(file.upstreams, name);
  const message = "is the name of an upstream";
  return [...(isTaken ? [{ path: at(), message }] : []), ...ofMembers, ...ofNames];
}

function protocolOf({ upstreams }: CatalogFile, name: string) {
  return Object.hasOwn(upstreams, name) ? upstreams[name]?.protocol : undefined;
}

/** The pool of this name. Undefined where there is none. */
export function poolOf({ pools }: CatalogFile, name: string) {
  return Object.hasOwn(pools, name) ? pools[name] : undefined;
}

/** The upstreams that a model means by a name: a pool's members, or the upstream itself. */
export function membersOf(file: CatalogFile, name: string): string[] {
  return poolOf(file, name)?.members.map(({ upstream }) => upstream) ?? [name];
}

/** An upstream with one of its keys, and what it gets of a model's requests. */
interface Lane {
  upstream: string;
  level: number;
  weight: number;
  upstreamModel: string;
}

/** The lanes of a model in the order of its catalog entry: for each upstream of each level, one for each key. */
export function lanesOf(file: CatalogFile, model: CatalogModel): Lane[] {
  return [model.upstream, ...model.fallbackUpstreams].flatMap((entry, level) => {
    const pool = poolOf(file, entry) ?? { members: [{ upstream: entry, weight: 1 }] };
    const names: Readonly<Record<string, string>> = poolOf(file, entry)?.upstreamModels ?? {};
    return pool.members.flatMap((member) => {
      const keyed = keyedOf(member.upstream, file.upstreams[member.upstream]);
      const upstreamModel = names[member.upstream] ?? "";
      const weight = member.weight / keyed.length;
      return keyed.map(({ name }) => ({ upstream: name, level, weight, upstreamModel }));
    });
  });
}

/** The entries of the snapshot for an upstream: one for each of its keys. */
export function keyedOf(upstream: string, entry: CatalogUpstream | undefined) {
  const { apiKeyEnv = "", apiKeyFile = "", apiKeyStored = "" } = entry ?? {};
  const { apiKeyEnvs = [apiKeyEnv] } = entry ?? {};
  return apiKeyEnvs.map((variable, place) => ({
    name: place === 0 ? upstream : `${upstream}#${place + 1}`,
    apiKeyEnv: variable,
    apiKeyFile,
    apiKeyStored,
  }));
}
