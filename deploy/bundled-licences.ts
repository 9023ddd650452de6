// Collects the licences of bundled packages. `build.ts` puts them beside the bundle.

import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

const licenceFile = /^(licen[cs]e|copying|notice)([.-].*)?$/i;
/** The folder of a module's innermost package. */
const packageFolder = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/;

/**
 * The licences of the packages of these modules (paths). A bundle that is passed on must have their terms. Each package has a section, in
 * the order of names.
 */
export async function bundledLicences(modules: readonly string[]): Promise<string> {
  const folders = new Set(modules.map((id) => packageFolder.exec(id.replaceAll("\\", "/"))?.[0]));
  folders.delete(undefined);
  const sections = await Promise.all([...folders].map((folder) => sectionOf(folder ?? "")));
  return sections.sort().join(`\n${"-".repeat(80)}\n\n`);
}

async function sectionOf(folder: string): Promise<string> {
  const { name, version, license } = JSON.parse(
    await readFile(join(folder, "package.json"), "utf8"),
  );
  const files = (await readdir(folder)).filter((file) => licenceFile.test(file)).sort();
  const texts = await Promise.all(files.map((file) => readFile(join(folder, file), "utf8")));
  return [`${name} ${version} (${license})`, ...texts.map((text) => text.trim())]
    .join("\n\n")
    .concat("\n");
}
