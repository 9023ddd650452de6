// Makes the headers of a step of a declaration, apart from those of the key, which `auth.ts` makes.

import { randomUUID } from "node:crypto";
import { type Declaration, freshUuid, type Step } from "./declaration.ts";

/** The headers that a declaration gives a request: those of all requests, and those of its step before them. Their names are in small letters. */
export function declaredHeaders(
  { headers }: Pick<Declaration, "headers">,
  step: Pick<Step, "headers"> = {},
): Record<string, string> {
  const written = [...Object.entries(headers ?? {}), ...Object.entries(step.headers ?? {})];
  return Object.fromEntries(
    written.map(([name, value]) => [
      name.toLowerCase(),
      value.replaceAll(freshUuid, () => randomUUID()),
    ]),
  );
}
