import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { TestProject } from "vitest/node";
import { build } from "../../deploy/build.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Where the bundles of a suite lie whose processes are killed and started all the time. */
    bundles: string;
  }
}

/** Programs of tests whose processes are worlds of their own. */
const ofTests = ["test/faults/jobs.child.ts", "test/faults/kills.child.ts"];
/** Below the packages that stay outside of a bundle. */
const above = fileURLToPath(new URL("../../node_modules/.cache", import.meta.url));

let folder: string | undefined;

/**
 * Before a suite: bundles what it starts. A process of the bundle, which is what an image runs, starts in less than half of the time that
 * the sources take, and most of what a death costs is a start.
 */
export async function setup(project: TestProject): Promise<void> {
  await mkdir(above, { recursive: true });
  folder = await mkdtemp(`${above}/bundles-`);
  await build(folder, ofTests);
  project.provide("bundles", folder);
}

/** Behind it: removes them. */
export async function teardown(): Promise<void> {
  if (folder !== undefined) await rm(folder, { recursive: true });
}
