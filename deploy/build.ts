// `npm run build`: makes dist/, which the image runs. It has genmesh's code and the packages that it imports, in as few modules as lazy
// loading allows. So a process searches, reads and compiles a tenth of the sources' files at its start.
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type OutputChunk, rolldown } from "rolldown";
import { buildConsole } from "../gateway/console/build.ts";
import { bundledLicences } from "./bundled-licences.ts";
import { ownFiles } from "./own-files.ts";

const root = fileURLToPath(new URL("..", import.meta.url));

/** The folder of the bundles, in the clone and in the image. */
export const dist = join(root, "dist");

/**
 * Programs that people and charts start by their paths. own-files.ts finds those that a program starts or reads by `new URL("./file",
 * import.meta.url)`.
 */
export const programs: readonly string[] = [
  "services/host/main.ts",
  "services/host/cli/main.ts",
  "services/host/run-mesh/main.ts",
  "deploy/jobs/bootstrap.ts",
  "deploy/jobs/make-tokens.ts",
  "deploy/jobs/smoke.ts",
];

/** The path of a program's bundle, from the root of the clone, or from the image's folder. */
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
 * Bundles everything into `folder`, which is emptied before. Programs have the paths of their sources, with `.js`. The licences of bundled
 * packages are added, and a package.json with the packages that must be beside or above it. `more` are other programs of this repository.
 */
export async function build(folder: string, more: readonly string[] = []): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  await using bundle = await rolldown({
    cwd: root,
    input: [],
    platform: "node",
    external: [...unbundled],
    plugins: [ownFiles(root, [...programs, ...more])],
    // A file that is also a tool must not act as one. In a bundle it would take the program for itself.
    transform: { define: { "import.meta.main": "false" } },
    // An import may be lazy for one role and not for another.
    checks: { ineffectiveDynamicImport: false },
  });
  // Neither minified nor mapped. A reader can find names and lines of a stack trace in the bundle. Maps would take 29 MB, a third more CPU
  // time for each start and 25 MiB of memory.
  const { output } = await bundle.write({
    dir: folder,
    format: "esm",
    // The extension is the type. For `.js` Node looks for the package.json above each, which takes 2 % of a start.
    chunkFileNames: "chunks/[name].mjs",
  });
  // In the folder in which the gateway looks for it. It replaces the page that the bundle copied from the sources.
  const ofConsole = await buildConsole(join(folder, "gateway/console/app"));
  const chunks = output.filter((file): file is OutputChunk => file.type === "chunk");
  const modules = chunks.flatMap(({ moduleIds }) => moduleIds);
  const licences = await bundledLicences([...modules, ...ofConsole]);
  await writeFile(join(folder, "THIRD-PARTY-LICENCES.txt"), licences);
  await writeFile(join(folder, "package.json"), await manifest());
}

/** The package.json of dist/. With it `npm prune` leaves the unbundled packages and their dependencies. */
async function manifest(): Promise<string> {
  const own = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
  const { name, version, license, engines } = own;
  const dependencies = Object.fromEntries(unbundled.map((one) => [one, own.dependencies[one]]));
  const fields = { name, version, private: true, license, type: "module", engines, dependencies };
  return `${JSON.stringify(fields, null, 2)}\n`;
}

if (import.meta.main) await build(dist);
