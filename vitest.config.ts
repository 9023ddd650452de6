import { tmpdir } from "node:os";
import { join } from "node:path";
import { configDefaults, defineConfig } from "vitest/config";
import { eventsVariable, writeEvents } from "./test/proof/events.ts";

// For the workers, and the threads and processes that they start: most of what a short one does is to compile.
process.env.NODE_COMPILE_CACHE ??= join(tmpdir(), "node-compile-cache");

// A real server starts inside several suites; a slow shared machine needs the room, and a test that waits for what never comes is stopped
// all the same. No test is tried again here: what fails in a
// proof is run once more at the end of its suite, alone, and said so (test/proof/suite.ts).
const timeouts = {
  testTimeout: 240_000,
  hookTimeout: 240_000,
  expect: { poll: { timeout: 60_000 } },
};
const attacks = "test/attacks/**/*.test.ts";
const browser = "test/console/**/*.test.ts";
const faults = "test/faults/**/*.test.ts";
const mesh = "test/mesh/**/*.test.ts";
/**
 * Modules are loaded once a worker: loading them for each file took a quarter of the whole run. What our modules keep of their own is
 * caches; what a test makes comes from a context, so files cannot meet through one.
 */
const isolate = false;

export default defineConfig({
  plugins: [writeEvents()],
  test: {
    // The report of a proof names the line of each test.
    includeTaskLocation: process.env[eventsVariable] !== undefined,
    // Most suites wait for sockets and processes more than they compute, so two cores carry three files at once.
    maxWorkers: 3,
    projects: [
      {
        // `npm test`: all that needs nothing but the install and a few minutes.
        test: {
          name: "main",
          include: ["{services,gateway,test,bin}/**/*.test.ts"],
          exclude: [...configDefaults.exclude, attacks, browser, faults, mesh],
          isolate,
          ...timeouts,
        },
      },
      // `npm run test:attacks`: what callers do to be charged less, to read what is not theirs, or to stop others. Much of it waits for
      // the clock: readers that stand still, callers that leave at every moment, disks that fill.
      { test: { name: "attacks", include: [attacks], isolate, ...timeouts } },
      // `npm run test:browser`: the console in Chromium.
      { test: { name: "browser", include: [browser], isolate, ...timeouts } },
      // Failures that the proof's own tests look at: no other run has them.
      ...(process.env.GENMESH_PROOF_FIXTURES
        ? [{ test: { name: "fixtures", include: ["test/proof/fixtures/*.fixture.ts"] } }]
        : []),
      // `npm run test:faults`: processes that are killed at every step, again and again, which takes minutes.
      { test: { name: "faults", include: [faults], ...timeouts } },
      // `npm run test:mesh`: several processes of every role on real servers, one mesh at a time.
      {
        test: {
          name: "mesh",
          include: [mesh],
          fileParallelism: false,
          ...timeouts,
        },
      },
    ],
  },
});
