import { eachValid, type FoundFault } from "#kit/base/valid-parts.ts";
import type { CatalogFile, CatalogUpstream } from "./schema.ts";

/** Faults of the keys of upstreams. */
export function keyFaults(file: CatalogFile): FoundFault[] {
  return eachValid(Object.keys(file.upstreams), (name) => {
    const upstream: Partial<CatalogUpstream> = file.upstreams[name] ?? {};
    const [, ...others] = keyPlaces.filter((place) => upstream[place] !== undefined);
    const message = `an upstream has one of ${keyPlaces.join(" and ")}`;
    return others.map((place) => ({ path: ["upstreams", name, place], message }));
  });
}

/** Keys of an upstream's entry that name its key. */
const keyPlaces = ["apiKeyEnv", "apiKeyFile"] as const;
