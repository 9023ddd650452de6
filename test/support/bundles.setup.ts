import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { TestProject } from "vitest/node";
import { build } from "../../deploy/build.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The folder of the bundles, for suites that kill and start processes all the time. */
    bundles: string;
  }
}

/** Programs of tests whose processes are worlds of their own. */
const ofTests = ["test/faults/jobs.child.ts", "test/faults/kills.child.ts"];
/** Below the packages that are not part of a bundle. */
const above = fileURLToPath(new URL("../../node_modules/.cache", import.meta.url));

let folder: string | undefined;

/**
 * Before a suite, bundles the programs that it starts. A process of the bundle starts in less than half of the sources' time, and most of a
 * kill's cost is the next start. An image runs the same bundle.
 */
export async function setup(project: TestProject): Promise<void> {
  await mkdir(above, { recursive: true });
  folder = await mkdtemp(`${above}/bundles-`);
  await build(folder, ofTests);
  project.provide("bundles", folder);
}

/** After the suite, deletes the bundles. */
export async function teardown(): Promise<void> {
  if (folder !== undefined) await rm(folder, { recursive: true });
}
