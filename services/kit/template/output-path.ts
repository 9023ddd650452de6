// Reads the places in an upstream's answer that a catalog names, and the values there.

import { isJsonObject, type JsonValue } from "#kit/base/json.ts";

/**
 * The place of a value in an upstream's answer: `images[*].url`, `video.url`, `output[*]`. `steps[type=video].url` keeps the items of a
 * list whose `type` is `video`.
 */
export type OutputPath = readonly (string | number | "*" | Having)[];

/** Items of a list that have this text under this name. */
interface Having {
  name: string;
  text: string;
}

/** Steps of a path: the deepest answers that upstreams give have five. */
const maxSteps = 16;

const step = /\.?([A-Za-z_][\w-]*)|\[(\*|\d{1,3})\]|\[([A-Za-z_][\w-]*)=([\w.:-]+)\]/y;

/** Reads a path. Undefined where the text is none. */
export function parseOutputPath(text: string): OutputPath | undefined {
  const steps: (string | number | Having)[] = [];
  step.lastIndex = 0;
  while (step.lastIndex < text.length) {
    const isFirst = step.lastIndex === 0;
    const found = step.exec(text);
    if (!found || steps.length === maxSteps) return undefined;
    const [all, name, index, having, wanted = ""] = found;
    if (name !== undefined && all.startsWith(".") === isFirst) return undefined;
    const item = having === undefined ? undefined : { name: having, text: wanted };
    steps.push(name ?? item ?? (index === "*" ? "*" : Number(index)));
  }
  return steps.length > 0 ? steps : undefined;
}

/**
 * The values at that place, in order. Empty where an answer has no such place. A single value where a list was meant is a list of one.
 */
export function readOutputPath(path: OutputPath, answer: JsonValue): JsonValue[] {
  let found: JsonValue[] = [answer];
  for (const part of path) {
    found = found.flatMap((value): JsonValue[] => {
      if (part === "*") return Array.isArray(value) ? value : [value];
      if (typeof part === "number") return Array.isArray(value) ? value.slice(part, part + 1) : [];
      if (typeof part === "object") {
        const items = Array.isArray(value) ? value : [value];
        return items.filter((item) => isJsonObject(item) && item[part.name] === part.text);
      }
      return isJsonObject(value) && Object.hasOwn(value, part) ? [value[part] ?? null] : [];
    });
  }
  return found.filter((value) => value !== null);
}
