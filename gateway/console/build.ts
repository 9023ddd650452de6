// `node gateway/console/build.ts FOLDER`: makes the console's page, scripts and style sheet from their sources.
import { createHash } from "node:crypto";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type OutputChunk, rolldown } from "rolldown";

const app = fileURLToPath(new URL("app/", import.meta.url));

/** Where the gateway serves the folder of a build. */
const basePath = "/console/";

/**
 * Builds the console into `folder`, which is emptied before. It makes `index.html`, its first script `start.js`, and in `assets/` the
 * other files that it loads. Their names have a hash of their bytes, so that a browser may keep them for ever.
 * Resolves with the paths of the modules in the scripts.
 */
export async function buildConsole(folder: string): Promise<string[]> {
  await rm(folder, { recursive: true, force: true });
  await mkdir(join(folder, "assets"), { recursive: true });
  const scripts = await buildScripts(folder);
  const style = await buildStyle(folder);
  const template = await readFile(join(app, "index.html"), "utf8");
  const page = template
    .replace("{{style}}", `${basePath}assets/${style}`)
    .replace("{{start}}", basePath + entryOf(scripts, "start"))
    .replace("{{main}}", basePath + entryOf(scripts, "main"))
    .replace("{{preloads}}", preloadsOf(scripts));
  await writeFile(join(folder, "index.html"), page);
  return scripts.flatMap(({ moduleIds }) => moduleIds);
}

async function buildScripts(folder: string): Promise<OutputChunk[]> {
  await using bundle = await rolldown({
    cwd: app,
    input: { main: "main.tsx", start: "start.ts" },
    platform: "browser",
    // The configuration file would be read for each source. All its settings for the bundle are here.
    tsconfig: false,
    transform: {
      target: "es2022",
      jsx: { runtime: "automatic", importSource: "preact", development: false },
    },
    // A screen is a lazy import. Code that two screens share becomes a separate chunk.
    checks: { ineffectiveDynamicImport: false },
    // A missing package would only be warned of, and its screens would not load.
    onLog: (level, log, handle) => handle(log.code === "UNRESOLVED_IMPORT" ? "error" : level, log),
  });
  const { output } = await bundle.write({
    dir: folder,
    format: "esm",
    minify: true,
    // Licences in the code of packages stay there.
    comments: { legal: true },
    entryFileNames: ({ name }) => (name === "start" ? "start.js" : "assets/[name]-[hash].js"),
    chunkFileNames: "assets/[name]-[hash].js",
  });
  return output.filter((file): file is OutputChunk => file.type === "chunk");
}

/** One style sheet: uPlot's rules, then ours, those of single screens last. Returns its name in `assets/`. */
async function buildStyle(folder: string): Promise<string> {
  const uplot = fileURLToPath(import.meta.resolve("uplot/dist/uPlot.min.css"));
  const sources = await Promise.all(
    [uplot, join(app, "style.css"), join(app, "screens.css")].map((file) => readFile(file, "utf8")),
  );
  const style = smaller(sources.join("\n"));
  const hash = createHash("sha256").update(style).digest("base64url").slice(0, 8);
  const name = `style-${hash}.css`;
  await writeFile(join(folder, "assets", name), style);
  return name;
}

/** The same rules without comments and needless blanks. (Our style sheet has no strings with either.) */
function smaller(style: string): string {
  return style
    .replace(/\/\*.*?\*\//gs, "")
    .replace(/\s+/g, " ")
    .replace(/\s*([{};,>])\s*/g, "$1")
    .replace(/: /g, ":")
    .replace(/;}/g, "}")
    .trim();
}

function entryOf(chunks: readonly OutputChunk[], name: string): string {
  const entry = chunks.find((chunk) => chunk.isEntry && chunk.name === name);
  if (!entry) throw new Error(`the build made no ${name}`);
  return entry.fileName;
}

/** The imports of the first script are loaded together with it, not after it. */
function preloadsOf(chunks: readonly OutputChunk[]): string {
  const main = chunks.find((chunk) => chunk.fileName === entryOf(chunks, "main"));
  return (main?.imports ?? [])
    .map((file) => `<link rel="modulepreload" href="${basePath}${file}">`)
    .join("");
}

if (import.meta.main) {
  const [folder] = process.argv.slice(2);
  if (!folder) throw new Error("usage: node gateway/console/build.ts FOLDER");
  await buildConsole(folder);
}
