import type { JsonObject } from "#kit/base/json.ts";

/** Properties that a change of an account may have. */
export const accountProperties: readonly string[] = ["name", "notes", "requestsPerMinute"];

/** The words of the audit log about a change: the names of its properties, and their figures. Texts that people write stay out of it. */
export function accountChangeDetails(body: JsonObject): Record<string, string | number | null> {
  const asked = Object.entries(body).filter(([name]) => accountProperties.includes(name));
  const figures = asked.flatMap(([name, value]) =>
    typeof value === "number" || value === null ? [[name, value] as const] : [],
  );
  return { changed: asked.map(([name]) => name).join(", "), ...Object.fromEntries(figures) };
}
