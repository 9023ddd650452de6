import { join } from "node:path";
import { inject } from "vitest";
import type {} from "./bundles.setup.ts";
import { thisCheckout } from "./checkout.ts";

/**
 * The file with which a program is started. `program` is its path in this repository. Its bundle where the suite has made one, otherwise
 * its source.
 */
export function programFile(program: string): string {
  const bundles = inject("bundles") as string | undefined;
  return bundles === undefined
    ? join(thisCheckout, program)
    : join(bundles, program.replace(/ts$/, "js"));
}
