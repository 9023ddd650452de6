import { describe } from "vitest";
import { findBackend } from "../support/backends.ts";

/** Tests on a mesh with real servers, or nothing but a word of why not. */
export async function describeMesh(title: string, tests: () => void): Promise<void> {
  const found = await Promise.all((["mongodb", "nats", "s3"] as const).map(findBackend));
  const notes = found.map(({ note }) => note).join("");
  describe.skipIf(found.some(({ url }) => !url))(`${title}${notes}`, tests);
}
