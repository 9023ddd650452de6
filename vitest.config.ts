// Says which tests belong to which project, and how each project runs.

import { tmpdir } from "node:os";
import { join } from "node:path";
import { configDefaults, defineConfig } from "vitest/config";
import { eventsVariable, writeEvents } from "./test/proof/events.ts";

// For the workers, and the threads and processes that they start. In short ones most of the time is compiling.
process.env.NODE_COMPILE_CACHE ??= join(tmpdir(), "node-compile-cache");

// A real server starts inside several suites, and a slow shared machine needs the time. A test that waits in vain is stopped in any case.
// Tests are not tried again here. A proof runs a failed test once more, alone, and reports that (test/proof/suite.ts).
const common = {
  setupFiles: "test/proof/begun.setup.ts",
  testTimeout: 240_000,
  hookTimeout: 240_000,
  expect: { poll: { timeout: 60_000 } },
};
/** Tests that render, start processes or wait for long: a third of the files' time in a tenth of the files. */
const long = [
  "services/builtin/**/*.test.ts",
  "services/kit/images/{broken,fair-share,large,verifier}.test.ts",
  "services/kit/json-reader/{exact-numbers,index}.test.ts",
  "services/text/{kept-bytes,request/operator-state-large}.test.ts",
  "services/text/tokens/count.test.ts",
  "services/upstreams/{builtin/media,openai/images-large,text/large-parts,text/leaving}.test.ts",
  "test/charts/jobs.test.ts",
  "test/clients/{agents,c2pa,cog,grpc-docs,grpc-examples,grpc-reflection,openai-socket-drain,python,typed-clients}.test.ts",
  "test/e2e/{console*,crash,declared,large-bodies,lifecycle,media-jobs,media-restart,pools,usage-crashes,webhooks}.test.ts",
  "test/host/**/!(mesh|migrate).test.ts",
  "test/image/container.test.ts",
  "test/{docs-site,proof/**/*,support/promptly}.test.ts",
  "test/upgrade/**/*.test.ts",
];
/**
 * End-to-end tests that run only in one process, in the other projects. Some test code of one role that is the same in both forms: how a
 * body is read and translated, the price of tokens, a protocol's driver. Others are about one process.
 */
const sameOnAMesh =
  "test/e2e/{called,comfyui,content-credentials,context,crash,data-uris,declared,developer-prompt,elevenlabs,embeddings,errors,fallback,file-costs,file-parts,forms*,half-characters,image-ratios,images,large-bodies,lifecycle,media-fallbacks,media-list,media-references,media-restart,media-validation,money-counted,money-reported,opaque-state,pools,reasoning,refused-parameters,silent-turns,telemetry-proxy,transcriptions,two-deployments,usage-crashes,validation}.test.ts";
/**
 * Others that repeat on a mesh what a mesh seldom changes: the operator's days, settings, webhooks, outputs of the built-in models. Some
 * cross roles like the usual answer and stream do: other forms of both, keys' management, models' lists, prices, figures.
 */
const longRoles =
  "test/e2e/{alerts,billing,chat,compact,console-admin,console-daily,console-flow,console-requests,cost,key-lifecycle,key-management,media-access,media-jobs,media-line,models,webhooks}.test.ts";
/** The rules for each store, queue and blob folder, with all their adapters, and other tests that need one server. */
const contracts = ["test/contract/**/*.test.ts", "test/host/{mesh,migrate}.test.ts"];
/**
 * Of these, half of the time in a quarter of the files. They test whole services on servers, several processes at one store with their
 * deaths, servers that are away, and large data. The others test the same stores' contracts, and the same services on embedded stores.
 */
const longContracts = [
  "test/contract/*.{services.mongo,mongo-processes,jetstream-processes,mongo-crash}.test.ts",
  "test/contract/{blobs.s3-away,blobs.s3-large,files.crash,files.large}.test.ts",
  "test/contract/{mongo.connect,queue.jetstream-away,stores.tls}.test.ts",
  "test/host/mesh.test.ts",
];
const attacks = "test/attacks/**/*.test.ts";
/** All except the day of the README. Every run of the main suite has that where there is a browser. */
const browser = "test/console/**/!(whole-day).test.ts";
const faults = "test/faults/**/*.test.ts";
const mesh = "test/mesh/**/*.test.ts";
/**
 * Of these, days, upgrades under load and under an open tab, a key by the README, large answers, wrong clocks, and certificates: half of
 * the time in seven files.
 */
const longMesh =
  "test/mesh/{clocks,console-upgrade,large-answers,readme-key,rolling,run-mesh,whole-day}.test.ts";
/** Their processes are killed and started all the time. */
const bundles = "test/support/bundles.setup.ts";
/**
 * Modules are loaded once in each worker. Loading them for each file took a quarter of the whole run. genmesh's modules keep only caches of
 * their own. Other state comes from a context of the test, so files cannot disturb each other.
 */
const isolate = false;

export default defineConfig({
  plugins: [writeEvents()],
  test: {
    // The report of a proof has the line of each test.
    includeTaskLocation: process.env[eventsVariable] !== undefined,
    // Most suites wait for sockets and processes longer than they compute, so two cores can run three files at once.
    maxWorkers: 3,
    experimental: { viteModuleRunner: false },
    projects: [
      {
        // `npm test`: all tests that need only the install and a few minutes.
        test: {
          name: "main",
          include: ["{services,gateway,test,bin}/**/*.test.ts"],
          exclude: [
            ...configDefaults.exclude,
            ...long,
            ...contracts,
            attacks,
            browser,
            faults,
            mesh,
          ],
          isolate,
          ...common,
        },
      },
      // `npm run test:long`: the other tests that need only the install.
      { test: { name: "long", include: long, isolate, ...common } },
      // `npm run test:contracts`: both adapters of each store, the embedded one and those of the available servers.
      {
        test: {
          name: "contracts",
          include: contracts,
          exclude: [...configDefaults.exclude, ...longContracts],
          isolate,
          ...common,
        },
      },
      // `npm run test:contracts:long`: the rest of them.
      { test: { name: "contracts-long", include: longContracts, isolate, ...common } },
      // `npm run test:attacks`: attempts to be charged less, to read others' data, or to stop others. Much of it waits for the clock:
      // readers that stop reading, callers that leave at every moment, disks that become full.
      { test: { name: "attacks", include: [attacks], isolate, ...common } },
      // `npm run test:browser`: the console in Chromium.
      { test: { name: "browser", include: [browser], isolate, ...common } },
      // Failures for the proof's own tests. No other run has them.
      ...(process.env.GENMESH_PROOF_FIXTURES
        ? [{ test: { ...common, name: "fixtures", include: ["test/proof/fixtures/*.fixture.ts"] } }]
        : []),
      // `npm run test:faults`: processes are killed at every step, again and again, which takes minutes.
      { test: { name: "faults", include: [faults], globalSetup: bundles, isolate, ...common } },
      // `npm run test:roles`: end-to-end tests across roles, on a mesh.
      {
        test: {
          name: "roles",
          include: ["test/e2e/**/*.test.ts"],
          exclude: [...configDefaults.exclude, sameOnAMesh, longRoles],
          isolate,
          ...common,
        },
      },
      // `npm run test:roles:long`: the rest of them.
      { test: { name: "roles-long", include: [longRoles], isolate, ...common } },
      // `npm run test:mesh`: several processes of every role on real servers, one mesh at a time.
      {
        test: {
          name: "mesh",
          include: [mesh],
          exclude: [...configDefaults.exclude, longMesh],
          globalSetup: bundles,
          fileParallelism: false,
          ...common,
        },
      },
      // `npm run test:mesh:long`: the rest of them.
      {
        test: {
          name: "mesh-long",
          include: [longMesh],
          globalSetup: bundles,
          fileParallelism: false,
          ...common,
        },
      },
    ],
  },
});
