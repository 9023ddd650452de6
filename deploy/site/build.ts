// `npm run docs:site`: makes a static site with search from the pages of docs/ and those that they lead to. docs/README.md is its navigation.
// `--out FOLDER` names another folder than deploy/site/dist, and `--base /PATH/` the path at which the site is served. A dead link is an error.
import { execFile } from "node:child_process";
import { cp, glob, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs, promisify } from "node:util";
import { navigation } from "./navigation.ts";
import { pages, placeOf, read, root, sitePage, sourceAddress, sourceText } from "./pages.ts";

const here = fileURLToPath(new URL(".", import.meta.url));
const program = join(here, "node_modules/@rspress/core/bin/rspress.js");
/** Bytes of the program's output: a line for each fault. */
const maxOutput = 16 << 20;

/** Makes the site in `out`, which is emptied before. Rejects with what the program says of a dead link. */
async function build(out: string, base: string): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "genmesh-site-"));
  try {
    const sources = await writePages(folder);
    await writeFile(join(folder, "style.css"), await styles());
    const config = `export default ${JSON.stringify(configOf(folder, out, base, sources))};\n`;
    await writeFile(join(folder, "rspress.config.mjs"), config);
    await rm(out, { recursive: true, force: true });
    const args = [program, "build", "--config", join(folder, "rspress.config.mjs")];
    await promisify(execFile)(process.execPath, args, { cwd: folder, maxBuffer: maxOutput });
    await nameAsides(out);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Writes the pages, their images and the sources that they lead to. Returns the addresses of the sources. */
async function writePages(folder: string): Promise<string[]> {
  const sources = new Set<string>();
  for (const page of pages) {
    const made = sitePage(page);
    await write(join(folder, "pages", placeOf(page)), made.text);
    for (const image of made.images) {
      await cp(join(root, image), join(folder, "pages", placeOf(image)));
    }
    for (const source of made.sources) sources.add(source);
  }
  for (const source of sources) {
    await write(join(folder, "pages/public", sourceAddress(source)), sourceText(source));
  }
  return [...sources].map(sourceAddress);
}

async function write(file: string, text: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, text);
}

/** The site's own rules, behind the colours of the console. */
async function styles(): Promise<string> {
  const [colours = ""] = read("gateway/console/app/style.css").match(/^:root \{.*?^\}/ms) ?? [];
  const lines = colours.match(/^ {2}--.*;$/gm) ?? [];
  return `:root {\n${lines.join("\n")}\n}\n${read("deploy/site/style.css")}`;
}

/** Gives the two asides of each page names, by which a screen reader tells them apart. */
async function nameAsides(out: string): Promise<void> {
  for await (const file of glob("**/*.html", { cwd: out })) {
    const page = await readFile(join(out, file), "utf8");
    const named = page
      .replace(
        '<aside class="rp-doc-layout__sidebar',
        '<aside aria-label="Pages" class="rp-doc-layout__sidebar',
      )
      .replace(
        '<aside class="rp-doc-layout__outline',
        '<aside aria-label="On this page" class="rp-doc-layout__outline',
      );
    await writeFile(join(out, file), named);
  }
}

function configOf(folder: string, out: string, base: string, sources: readonly string[]): object {
  const { version, description } = JSON.parse(read("package.json"));
  return {
    root: join(folder, "pages"),
    outDir: out,
    base,
    title: "genmesh",
    description,
    icon: pathToFileURL(join(root, "gateway/favicon.svg")),
    globalStyles: join(folder, "style.css"),
    mediumZoom: false,
    themeConfig: {
      sidebar: { "/": navigation() },
      footer: { message: `genmesh ${version}` },
    },
    markdown: { link: { checkAnchors: true, checkDeadLinks: { excludes: sources } } },
  };
}

const { values } = parseArgs({
  options: {
    out: { type: "string", default: join(here, "dist") },
    base: { type: "string", default: "/" },
  },
});
await build(resolve(values.out), values.base);
process.stdout.write(`${resolve(values.out)}\n`);
