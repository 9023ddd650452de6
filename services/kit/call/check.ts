import { type Placeholder, partsOf, type Template, type TemplatePath } from "./template.ts";

/** What generations of one model bring to a template. */
export interface Offer {
  /** The values that there are, by name: each that a caller can choose as text, or `any`. */
  values: ReadonlyMap<string, readonly string[] | "any">;
  /** Reference images that a generation may have. */
  maxReferences: number;
  /** Names that a caller may set and that must have an effect, so must be placed; each with what it would be lost for. */
  mustPlace: ReadonlyMap<string, string>;
}

/** What is wrong with a template, and where in it. */
export interface TemplateFault {
  path: TemplatePath;
  message: string;
}

/** Faults that can be seen before a request comes: what a template names must exist, and what a caller chooses must be placed. */
export function templateFaults(template: Template, offer: Offer): TemplateFault[] {
  const faults: TemplateFault[] = [];
  const placed = new Set<string>();
  for (const part of partsOf(template)) {
    if (part.kind === "fault") {
      faults.push({ path: part.path, message: part.message });
      continue;
    }
    const placeholder = part.kind === "map" ? part.of : part.placeholder;
    placed.add(placeholder.name);
    const fault = nameFault(placeholder, offer);
    if (fault) {
      faults.push({ path: part.path, message: fault });
      continue;
    }
    if (part.kind !== "map") continue;
    const values = offer.values.get(placeholder.name);
    const missing = Array.isArray(values) ? values.filter((v) => !part.keys.includes(v)) : [];
    for (const value of missing) {
      faults.push({
        path: part.path,
        message: `has no entry for ${value}, which the model offers`,
      });
    }
  }
  for (const [name, loss] of offer.mustPlace) {
    if (!placed.has(name)) faults.push({ path: [], message: `places no ${name}: ${loss}` });
  }
  return faults;
}

function nameFault({ name, index }: Placeholder, offer: Offer): string | undefined {
  if (name === "references") {
    if (index === undefined || index < offer.maxReferences) return undefined;
    return `places reference ${index + 1} of at most ${offer.maxReferences}`;
  }
  if (!offer.values.has(name)) return `names ${name}, which is no value of this kind of generation`;
  return index === undefined ? undefined : `${name} is no list`;
}
