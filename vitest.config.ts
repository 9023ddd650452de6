import { tmpdir } from "node:os";
import { join } from "node:path";
import { configDefaults, defineConfig } from "vitest/config";

// For the workers, and the threads and processes that they start: most of what a short one does is to compile.
process.env.NODE_COMPILE_CACHE ??= join(tmpdir(), "node-compile-cache");

// A real server starts inside several suites; a slow shared machine needs the room. The contract promises times (250 ms,
// 1 s) that a busy machine can miss once: what is wrong is wrong three times.
const timeouts = { testTimeout: 60_000, hookTimeout: 60_000, retry: 2 };
const faults = "test/faults/**/*.test.ts";
const mesh = "test/mesh/**/*.test.ts";

export default defineConfig({
  test: {
    // Most suites wait for sockets and processes more than they compute, so two cores carry three files at once.
    maxWorkers: 3,
    projects: [
      {
        // `npm test`: all that needs nothing but the install.
        test: {
          name: "main",
          include: ["{services,gateway,test,bin}/**/*.test.ts"],
          exclude: [...configDefaults.exclude, faults, mesh],
          // Modules are loaded once a worker: loading them for each file took a quarter of the whole run. What our modules
          // keep of their own is caches; what a test makes comes from a context, so files cannot meet through one.
          isolate: false,
          ...timeouts,
        },
      },
      // `npm run test:faults`: processes that are killed at every step, again and again, which takes minutes.
      { test: { name: "faults", include: [faults], ...timeouts } },
      // `npm run test:mesh`: several processes of every role on real servers, one mesh at a time. Nothing is tried again: what
      // is lost or charged twice once is wrong.
      {
        test: {
          name: "mesh",
          include: [mesh],
          fileParallelism: false,
          ...timeouts,
          hookTimeout: 180_000,
          retry: 0,
        },
      },
    ],
  },
});
