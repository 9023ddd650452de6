// Finds the built files of the console, and builds them in a clone where they are missing or old. `app-files.ts` sends them, and
// `build.ts` is the program that builds.

import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { access, mkdir, mkdtemp, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { untilAborted } from "#kit/base/abort.ts";
import type { Logger } from "#kit/base/logger.ts";
import { buildOutputBytes, buildTimeoutMs, keptBuilds } from "./limits.ts";

/** The present state of the app: the folder of a build, or the reason why there is none yet. */
export type AppBuild =
  | { kind: "built"; folder: string }
  | { kind: "building" }
  | { kind: "failed"; output: string };

/** Finds the app's build. In a clone it makes it. */
export interface AppBuilds extends AsyncDisposable {
  current(): Promise<AppBuild>;
}

/** In a clone the app's sources are here. In the image its build is here. */
const ownApp = dirname(fileURLToPath(new URL("./app/index.html", import.meta.url)));

/** The folders of a clone. */
interface Clone {
  app: string;
  buildProgram: string;
  root: string;
}

/**
 * In the image the app was built with it. In a clone a child process builds it for the first request, and for the first one after its
 * sources changed. A build is kept under a hash of the sources, so that the next start finds it.
 */
export function createAppBuilds({
  log,
  appFolder = ownApp,
}: {
  log: Logger;
  /** For tests. */
  appFolder?: string;
}): AppBuilds {
  const clone: Clone = {
    app: appFolder,
    buildProgram: join(appFolder, "../build.ts"),
    root: join(appFolder, "../../.."),
  };
  const life = new AbortController();
  let known: { stamp: string; build: AppBuild } | undefined;
  let building: Promise<void> | undefined;
  let looking: Promise<string> | undefined;
  const isClone = access(clone.buildProgram).then(
    () => true,
    () => false,
  );
  const begin = async (stamp: string) => {
    const key = await contentHash(clone);
    const cache = await cacheFolder(clone);
    const folder = join(cache, key);
    if (await exists(join(folder, "index.html"))) {
      known = { stamp, build: { kind: "built", folder } };
      return;
    }
    log.info({ folder }, "building the console");
    const output = await runBuild(clone, { cache, folder }, life.signal);
    if (life.signal.aborted) return;
    if (output !== undefined) log.error({ output }, "the console could not be built");
    else await forgetOld(cache);
    const build: AppBuild =
      output === undefined ? { kind: "built", folder } : { kind: "failed", output };
    known = { stamp, build };
  };
  return {
    async current() {
      if (!(await isClone)) return { kind: "built", folder: appFolder };
      // Requests that come while another looks share its result.
      looking ??= stampOfSources(clone).finally(() => {
        looking = undefined;
      });
      const stamp = await looking;
      if (known?.stamp === stamp) return known.build;
      building ??= begin(stamp)
        .catch((error) => {
          log.error({ err: error }, "the console could not be built");
          known = { stamp, build: { kind: "failed", output: String(error) } };
        })
        .finally(() => {
          building = undefined;
        });
      // An earlier build is found in a moment. A new one takes longer than a page should be empty.
      const soon = AbortSignal.timeout(foundMs);
      await untilAborted(building, soon).catch(() => {});
      return known?.stamp === stamp ? known.build : { kind: "building" };
    },
    async [Symbol.asyncDispose]() {
      life.abort();
      await building;
    },
  };
}

/** Milliseconds in which a kept build is found. */
const foundMs = 150;

/** Changes when a source does. It costs a look at each of some fifty files. */
async function stampOfSources(clone: Clone): Promise<string> {
  const files = await sources(clone);
  const states = await Promise.all(
    files.map(async (file) => {
      const { mtimeMs, size } = await stat(file);
      return `${file} ${mtimeMs} ${size}`;
    }),
  );
  return states.join("\n");
}

async function contentHash(clone: Clone): Promise<string> {
  const hash = createHash("sha256");
  for (const file of await sources(clone)) {
    const bytes = await readFile(file);
    hash.update(`${file.slice(clone.root.length)} ${bytes.length}\n`).update(bytes);
  }
  return hash.digest("hex").slice(0, 32);
}

/** All files that a build depends on: the app, the program that builds it, and the packages' versions. */
async function sources({ app, buildProgram, root }: Clone): Promise<string[]> {
  const entries = await readdir(app, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
  return [...files, buildProgram, join(root, "package-lock.json")];
}

/** Beside the packages, where tools keep such files. Elsewhere where the clone may not be written to. */
async function cacheFolder({ root }: Clone): Promise<string> {
  const folder = join(root, "node_modules/.cache/genmesh-console");
  try {
    await mkdir(folder, { recursive: true });
    return folder;
  } catch {
    return mkdtemp(join(tmpdir(), "genmesh-console-"));
  }
}

/** Builds into `folder`, which appears complete. Answers the output of a build that failed. */
async function runBuild(
  { buildProgram, root }: Clone,
  { cache, folder }: { cache: string; folder: string },
  signal: AbortSignal,
): Promise<string | undefined> {
  const making = await mkdtemp(join(cache, "making-"));
  try {
    const output = await run(root, [buildProgram, making], signal);
    if (output !== undefined) return output;
    await rename(making, folder).catch(async (error) => {
      // Another process was first.
      if (!(await exists(join(folder, "index.html")))) throw error;
    });
    return undefined;
  } finally {
    await rm(making, { recursive: true, force: true });
  }
}

/** Undefined where it ended well. Otherwise its output. */
async function run(
  root: string,
  args: readonly string[],
  signal: AbortSignal,
): Promise<string | undefined> {
  const child = spawn(process.execPath, args, {
    cwd: root,
    stdio: ["ignore", "pipe", "pipe"],
    signal: AbortSignal.any([signal, AbortSignal.timeout(buildTimeoutMs)]),
  });
  let said = "";
  const hear = (chunk: Buffer) => {
    said = `${said}${chunk}`.slice(0, buildOutputBytes);
  };
  child.stdout.on("data", hear);
  child.stderr.on("data", hear);
  return new Promise((resolve) => {
    child.once("error", (error) => resolve(`${said}${error.message}`));
    child.once("close", (code) =>
      resolve(code === 0 ? undefined : said || `it ended with ${code}`),
    );
  });
}

/** Leaves the newest builds. */
async function forgetOld(cache: string): Promise<void> {
  const names = (await readdir(cache)).filter((name) => /^[0-9a-f]{32}$/.test(name));
  const ages = await Promise.all(
    names.map(async (name) => ({ name, ms: (await stat(join(cache, name))).mtimeMs })),
  );
  const old = ages.sort((a, b) => b.ms - a.ms).slice(keptBuilds);
  await Promise.all(old.map(({ name }) => rm(join(cache, name), { recursive: true, force: true })));
}

function exists(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  );
}
