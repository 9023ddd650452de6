// Finds the pages of the documentation's site, and their addresses in it.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("../..", import.meta.url));

/** The files of the repository, committed or new, by their paths from its root. */
const files = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], {
  cwd: root,
  encoding: "utf8",
})
  .split("\n")
  .filter((file) => file !== "");
const known = new Set(files);

/** All pages: every Markdown file except for forms of the repository's host. */
export const pages = files.filter((file) => /^(?!\.)[^.]*\.md$/.test(file));

/** The text of a file of the repository. */
export const read = (file: string): string => readFileSync(join(root, file), "utf8");

/** Where a page or an image is in the site: `docs/keys.md` is `keys.md`, and `docs/README.md` is the first page. */
export function placeOf(file: string): string {
  if (file === "README.md") return "start.md";
  const path = file.replace(/^docs\//, "").replace(/README\.md$/, "index.md");
  return path.endsWith(".md") ? path.toLowerCase() : path;
}

/** The address of a page in the site, without its ending. */
export function addressOf(page: string): string {
  return `/${placeOf(page).replace(/(^|\/)index\.md$|\.md$/, "$1")}`;
}

/** The file or folder that a link from a page names, and its `#heading` or nothing. The page of a folder is its README. */
export function targetOf(page: string, link: string): { path: string; hash: string } {
  const [file = "", hash = ""] = link.split(/(?=#)/);
  const path = posix.join(dirname(page), file).replace(/\/$/, "");
  const readme = `${path}/README.md`;
  return { path: known.has(readme) ? readme : path, hash };
}

/** A page of the site, with its images and the files that it links to. */
export interface SitePage {
  text: string;
  images: readonly string[];
  /** Files and folders that are no pages. */
  sources: readonly string[];
}

const fence = /(^ *```.*?^ *```$)/gms;
/** A link or an image to another file. The text of a link may be an image. */
const link = /(!?)\[((?:[^[\]]|!\[[^\]]*\]\([^)]*\))*)\]\((?![a-z]+:|#)([^)\s]+)\)/g;

/** A page with its links as the site needs them. Throws where a link names no file. */
export function sitePage(page: string): SitePage {
  const images = new Set<string>();
  const sources = new Set<string>();
  const resolve = (to: string, isImage: boolean): string => {
    const { path, hash } = targetOf(page, to);
    if (!known.has(path) && filesIn(path).length === 0) throw new Error(`${page}: no file ${to}`);
    if (isImage) {
      images.add(path);
      return `./${posix.relative(dirname(placeOf(page)), placeOf(path))}`;
    }
    if (pages.includes(path)) return `${addressOf(path)}${hash}`;
    sources.add(path);
    return sourceAddress(path);
  };
  const parts = read(page).split(fence);
  const text = parts.map((part, index) =>
    index % 2 === 1
      ? part
      : part.replaceAll(link, (_, mark: string, label: string, to: string) => {
          return `${mark}[${label}](${resolve(to, mark === "!")})`;
        }),
  );
  return { text: text.join(""), images: [...images], sources: [...sources] };
}

/** The address of a file or folder that is no page. As text every browser shows it. */
export function sourceAddress(path: string): string {
  return `/files/${path}.txt`;
}

/** The text at a `sourceAddress`: that of a file, or the names of a folder's files. */
export function sourceText(path: string): string {
  return known.has(path) ? read(path) : `${filesIn(path).join("\n")}\n`;
}

function filesIn(folder: string): string[] {
  return files.filter((file) => file.startsWith(`${folder}/`));
}
