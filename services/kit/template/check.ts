// Finds faults of a template when the catalog is read. So no request fails later because of a name that does not exist.

import { type Placeholder, partsOf, type Template, type TemplatePath } from "./template.ts";

/** The values that generations of one model offer to a template. */
export interface Offer {
  /** The values by name. Each has the texts that a caller can choose, or `any`. */
  values: ReadonlyMap<string, readonly string[] | "any">;
  /** The most reference images of a generation. Each of them must be placed. */
  maxReferences: number;
  /** Names that a caller may set and that must have an effect, so the template must place them. Each with the reason. */
  mustPlace: ReadonlyMap<string, string>;
}

/** A fault in a template, and its place. */
export interface TemplateFault {
  path: TemplatePath;
  message: string;
}

/**
 * Faults that can be seen before a request comes. A template may use only names that exist, and must place each value that a caller
 * chooses.
 */
export function templateFaults(template: Template, offer: Offer): TemplateFault[] {
  const faults: TemplateFault[] = [];
  const placed = new Set<string>();
  const references = new Set<number>();
  for (const part of partsOf(template)) {
    if (part.kind === "fault") {
      faults.push({ path: part.path, message: part.message });
      continue;
    }
    const placeholder = part.kind === "map" ? part.of : part.placeholder;
    placed.add(placeholder.name);
    for (const at of referencesIn(placeholder, offer)) references.add(at);
    const isLeftOut = part.kind === "placeholder" && part.isEach === true;
    const fault = isLeftOut ? undefined : nameFault(placeholder, offer);
    if (fault) {
      faults.push({ path: part.path, message: fault });
      continue;
    }
    if (part.kind !== "map") continue;
    const values = offer.values.get(placeholder.name);
    const isOpen = !Array.isArray(values) || part.keys.includes("*");
    const missing = isOpen ? [] : values.filter((v) => !part.keys.includes(v));
    for (const value of missing) {
      faults.push({
        path: part.path,
        message: `has no entry for ${value}, which the model offers: add one, or "*" for all others`,
      });
    }
  }
  for (const [name, loss] of offer.mustPlace) {
    if (!placed.has(name)) faults.push({ path: [], message: `places no ${name}: ${loss}` });
  }
  const unplaced = indexesOf(offer).find((index) => !references.has(index));
  if (unplaced !== undefined) {
    const which = references.size === 0 ? "references" : `reference ${unplaced + 1}`;
    faults.push({ path: [], message: `places no ${which}: ${chosenInVain}` });
  }
  return faults;
}

/** The reason why a value that callers choose must be placed. */
export const chosenInVain = "what callers choose there would be lost";

function indexesOf({ maxReferences }: Offer): number[] {
  return Array.from({ length: maxReferences }, (_, index) => index);
}

/** Indexes of the references that a placeholder places. */
function referencesIn({ name, index }: Placeholder, offer: Offer): number[] {
  if (name !== "references") return [];
  return index === undefined ? indexesOf(offer) : [index];
}

function nameFault({ name, index }: Placeholder, offer: Offer): string | undefined {
  if (name === "references") {
    const least = index ?? 0;
    if (least < offer.maxReferences) return undefined;
    return `places reference ${least + 1} of at most ${offer.maxReferences}`;
  }
  if (!offer.values.has(name)) return `names ${name}, which no generation of this model has`;
  return index === undefined ? undefined : `${name} is no list`;
}
