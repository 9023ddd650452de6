import { join } from "node:path";
import { inject } from "vitest";
import type {} from "./bundles.setup.ts";
import { thisCheckout } from "./checkout.ts";

/** The file to start of a program, that is named by its path in this repository: its bundle where the suite has made one, else its source. */
export function programFile(program: string): string {
  const bundles = inject("bundles") as string | undefined;
  return bundles === undefined
    ? join(thisCheckout, program)
    : join(bundles, program.replace(/ts$/, "js"));
}
