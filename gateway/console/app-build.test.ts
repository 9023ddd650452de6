import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type AppBuild, type AppBuilds, createAppBuilds } from "./app-build.ts";

const log = pino({ level: "silent" });
let root: string;
let app: string;
let builds: AppBuilds;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "genmesh-console-"));
  app = join(root, "gateway/console/app");
  await mkdir(app, { recursive: true });
  await mkdir(join(root, "node_modules"));
  await writeFile(join(root, "package-lock.json"), "{}");
  await writeFile(join(app, "index.html"), "one");
  // A build that reports how often it ran, waits while the test holds it, and fails where the page says so.
  await writeFile(
    join(root, "gateway/console/build.ts"),
    `import { appendFileSync, copyFileSync, existsSync, mkdirSync, readFileSync } from "node:fs";
     import { setTimeout as delay } from "node:timers/promises";
     const folder: string = process.argv[2] ?? "";
     const page = import.meta.dirname + "/app/index.html";
     appendFileSync(import.meta.dirname + "/../../ran", "x");
     while (existsSync(import.meta.dirname + "/../../held")) await delay(10);
     if (readFileSync(page, "utf8").includes("fault")) throw new Error("a <fault> of the page");
     mkdirSync(folder + "/assets", { recursive: true });
     copyFileSync(page, folder + "/index.html");`,
  );
  builds = createAppBuilds({ log, appFolder: app });
});
afterEach(async () => {
  await builds[Symbol.asyncDispose]();
  await rm(root, { recursive: true, force: true });
});

/** Asks until the app is no longer being built, like the page that shows that. */
async function untilBuilt(
  of: AppBuilds = builds,
): Promise<Exclude<AppBuild, { kind: "building" }>> {
  for (;;) {
    const build = await of.current();
    if (build.kind !== "building") return build;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
const pageOf = async (build: AppBuild) =>
  build.kind === "built" ? readFile(join(build.folder, "index.html"), "utf8") : build.kind;
const ran = async () => (await readFile(join(root, "ran"), "utf8").catch(() => "")).length;

test("a clone's first request builds, and says so meanwhile; those beside it wait for the same build", async () => {
  expect(await ran()).toBe(0);
  await writeFile(join(root, "held"), "");
  const first = await Promise.all([builds.current(), builds.current(), builds.current()]);
  expect(first).toEqual(Array(3).fill({ kind: "building" }));
  await rm(join(root, "held"));
  expect(await pageOf(await untilBuilt())).toBe("one");
  expect(await ran()).toBe(1);
});

test("a changed source is built anew, and a build of before is found again, also by the next start", async () => {
  await untilBuilt();
  await writeFile(join(app, "index.html"), "two!");
  expect(await pageOf(await untilBuilt())).toBe("two!");
  await writeFile(join(app, "index.html"), "one");
  expect(await pageOf(await untilBuilt())).toBe("one");
  expect(await ran()).toBe(2);
  const next = createAppBuilds({ log, appFolder: app });
  expect(await pageOf(await untilBuilt(next))).toBe("one");
  await next[Symbol.asyncDispose]();
  expect(await ran()).toBe(2);
});

test("what a build that failed says is kept, until a source changes", async () => {
  await writeFile(join(app, "index.html"), "a fault");
  const failed = await untilBuilt();
  expect(failed).toMatchObject({ kind: "failed", output: expect.stringContaining("a <fault>") });
  await untilBuilt();
  expect(await ran()).toBe(1);
  await writeFile(join(app, "index.html"), "mended");
  expect(await pageOf(await untilBuilt())).toBe("mended");
});

test("few builds stay, and nothing half-made", async () => {
  for (let n = 0; n < 8; n++) {
    await writeFile(join(app, "index.html"), `page ${n}`);
    expect(await pageOf(await untilBuilt())).toBe(`page ${n}`);
  }
  const kept = await readdir(join(root, "node_modules/.cache/genmesh-console"));
  expect(kept).toHaveLength(5);
});

test("where there are no sources, what is there was built", async () => {
  await rm(join(root, "gateway/console/build.ts"));
  const image = createAppBuilds({ log, appFolder: app });
  expect(await image.current()).toEqual({ kind: "built", folder: app });
  await image[Symbol.asyncDispose]();
});
