// `npm run build`: makes dist/, which is what the image runs: our code and the packages that it imports, as few modules as
// lazy loading leaves. A tenth of the files of the sources are looked for, read and compiled when a process starts.
import { execFile } from "node:child_process";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { type OutputChunk, rolldown } from "rolldown";
import { bundledLicences } from "./bundled-licences.ts";
import { ownFiles } from "./own-files.ts";

const root = fileURLToPath(new URL("..", import.meta.url));

/** Where `npm run build` puts everything, in the clone and in the image. */
export const dist = join(root, "dist");

/**
 * What is started by its path, by people and charts. What the program itself starts or reads by
 * `new URL("./file", import.meta.url)` is found where that stands (own-files.ts).
 */
export const programs: readonly string[] = [
  "services/host/main.ts",
  "services/host/cli/main.ts",
  "services/host/run-mesh/main.ts",
  "deploy/jobs/bootstrap.ts",
  "deploy/jobs/make-tokens.ts",
  "deploy/jobs/smoke.ts",
];

/** Where that puts the bundle of a program, from the root of the clone, or from the image's folder. */
export function bundleOf(program: string): string {
  return `dist/${program.replace(/ts$/, "js")}`;
}

/** Packages that stay in node_modules: machine code, a driver that is required on demand, and files that are no modules. */
const unbundled = [
  "sharp",
  "mongodb",
  "@fontsource/inter",
  "@fontsource/kosugi",
  "@fontsource/noto-emoji",
] as const;

/**
 * Bundles everything into `folder`, which is emptied before: programs under the paths of their sources, with `.js`; the
 * licences of what is in them; and a package.json with the packages that must lie beside or above it. `more`: other
 * programs of this repository.
 */
export async function build(folder: string, more: readonly string[] = []): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  await using bundle = await rolldown({
    cwd: root,
    input: [],
    platform: "node",
    external: [...unbundled],
    plugins: [ownFiles(root, [...programs, ...more])],
    // Files that are also tools are none here: in a bundle they would take the program for themselves.
    transform: { define: { "import.meta.main": "false" } },
    // An import that is lazy for one role and not for another is no mistake.
    checks: { ineffectiveDynamicImport: false },
  });
  // Neither minified nor mapped: names and lines of a stack trace can be found in the bundle as they are, while maps would
  // take 29 MB, a third more CPU time for each start and 25 MiB of memory.
  const { output } = await bundle.write({
    dir: folder,
    format: "esm",
    // The extension says what they are: for `.js` Node looks for the package.json above each, 2 % of a start.
    chunkFileNames: "chunks/[name].mjs",
  });
  await buildConsole(join(folder, "gateway/console/app"));
  const chunks = output.filter((file): file is OutputChunk => file.type === "chunk");
  const modules = chunks.flatMap(({ moduleIds }) => moduleIds);
  const ofConsole = consolePackages.map((one) => join(root, "node_modules", one, "package.json"));
  const licences = await bundledLicences([...modules, ...ofConsole]);
  await writeFile(join(folder, "THIRD-PARTY-LICENCES.txt"), licences);
  await writeFile(join(folder, "package.json"), await manifest());
}

/** Packages of the console's page. */
const consolePackages = [
  "preact",
  "@preact/signals",
  "@preact/signals-core",
  "preact-iso",
  "uplot",
];

/**
 * The console as browsers load it, where the gateway looks for it: in place of the page that the bundle took along from the
 * sources.
 */
async function buildConsole(folder: string): Promise<void> {
  const program = join(root, "gateway/console/build.ts");
  await promisify(execFile)(process.execPath, [program, folder], { cwd: root });
}

/** What npm needs to know of dist/: with it `npm prune` leaves the unbundled packages and theirs. */
async function manifest(): Promise<string> {
  const own = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
  const { name, version, license, engines } = own;
  const dependencies = Object.fromEntries(unbundled.map((one) => [one, own.dependencies[one]]));
  const fields = { name, version, private: true, license, type: "module", engines, dependencies };
  return `${JSON.stringify(fields, null, 2)}\n`;
}

if (import.meta.main) await build(dist);
