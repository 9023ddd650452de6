import { readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import { describe, expect, test } from "vitest";
import { type Entry, navigation } from "../deploy/site/navigation.ts";
import { addressOf } from "../deploy/site/pages.ts";
import { createProgram } from "../services/host/cli/program.ts";
import { envToOperatorConfig } from "../services/host/config.ts";
import { ownFiles } from "./support/own-files.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const tracked = ownFiles();
const pages = tracked.filter((file) => file.endsWith(".md"));
const read = (file: string) => readFileSync(join(root, file), "utf8");

/** Every file, and every folder with a file. */
const paths = new Set(tracked.flatMap((file) => [file, ...foldersOf(file)]));

function foldersOf(file: string): string[] {
  const parts = file.split("/").slice(0, -1);
  return parts.map((_, at) => parts.slice(0, at + 1).join("/"));
}

const fence = /^ *```.*?^ *```$/gms;

/** A page without its blocks of code. */
const proseOf = (page: string) => read(page).replaceAll(fence, "");

/** The anchors of a page's headings on GitHub. */
function anchorsOf(page: string): Set<string> {
  const anchors = new Set<string>();
  for (const [, heading = ""] of proseOf(page).matchAll(/^#{1,6} (.+)$/gm)) {
    const words = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1").toLowerCase();
    const anchor = words.replaceAll(/[^\p{L}\p{N}\s_-]/gu, "").replaceAll(/\s/g, "-");
    const repeated = [...anchors].filter((one) => one.replace(/-\d+$/, "") === anchor).length;
    anchors.add(repeated === 0 ? anchor : `${anchor}-${repeated}`);
  }
  return anchors;
}

/** The fault of a link from a page. Undefined: none. */
function faultOf(page: string, link: string): string | undefined {
  const [file = "", anchor] = link.split("#");
  const target = file === "" ? page : posix.join(dirname(page), file).replace(/\/$/, "");
  if (!paths.has(target)) return `${link}: no such file`;
  if (anchor === undefined || anchorsOf(target).has(anchor)) return undefined;
  return `${link}: no such heading`;
}

describe("what the pages name is there", () => {
  test.each(pages)("links of %s", (page) => {
    const links = [...proseOf(page).matchAll(/\]\((?!https?:|mailto:)([^)\s]+)\)/g)];
    expect(links.flatMap(([, link = ""]) => faultOf(page, link) ?? [])).toEqual([]);
  });

  test.each(pages)("files in the code words of %s", (page) => {
    // `limits.ts` can be any of many files. `kit/base/json.ts` is one, by the end of its path.
    const words = [...proseOf(page).matchAll(/`([\w.-]+(?:\/[\w.*-]+)+\.[a-z]+)`/g)];
    const named = words.map(([, word = ""]) => word);
    const missing = named.filter((word) => {
      const pattern = word.replaceAll(".", "\\.").replaceAll("*", "[^/]*");
      return /\.(ts|js|json|md|proto|sh|svg|tpl|ya?ml)$/.test(word) && !isFile(pattern);
    });
    expect(missing).toEqual([]);
  });

  test("pages that comments send their readers to", () => {
    const sources = tracked.filter((file) => /\.(ts|proto|ya?ml|tpl)$/.test(file));
    const missing = sources.flatMap((file) =>
      [...read(file).matchAll(/\bdocs\/(?:decisions\/)?[\w-]+\.md(?:#[\w-]+)?/g)]
        .flatMap(([link]) => faultOf("README.md", link) ?? [])
        .map((fault) => `${file}: ${fault}`),
    );
    expect(missing).toEqual([]);
  });

  test("npm scripts", () => {
    const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };
    const asked = pages.flatMap((page) =>
      [...read(page).matchAll(/\bnpm (?:run (?!-)([\w:-]+)|(test|start)\b)/g)].map(
        ([, script, short]) => ({ page, script: script ?? short ?? "" }),
      ),
    );
    expect(asked.length).toBeGreaterThan(10);
    expect(asked.filter(({ script }) => !Object.hasOwn(scripts, script))).toEqual([]);
  });

  test("calls of the genmesh command, and their options", () => {
    const config = envToOperatorConfig({ GENMESH_DATA_DIR: "/nowhere" });
    const { command } = createProgram({ config, out() {}, err() {} });
    const calls = pages.flatMap(callsIn);
    expect(calls.length).toBeGreaterThan(20);
    const faults = calls.flatMap(({ page, words }) => {
      const fault = faultOfCall(command, words);
      return fault ? [`${page}: genmesh ${words.join(" ")}: ${fault}`] : [];
    });
    expect(faults).toEqual([]);
  });
});

test("the navigation of the site has every page of docs once in each of its lists", () => {
  const lists = (entries: Entry[]): Entry[][] => [
    entries,
    ...entries.flatMap(({ items = [] }) => lists(items)),
  ];
  const all = lists(navigation());
  const twice = all.flatMap((list) => {
    const links = list.map(({ link }) => link).filter((link) => link !== undefined);
    return links.filter((link, index) => links.indexOf(link) !== index);
  });
  expect(twice).toEqual([]);
  const linked = new Set(all.flat().map(({ link }) => link));
  const ofDocs = pages.filter((page) => page.startsWith("docs/"));
  expect(ofDocs.length).toBeGreaterThan(40);
  expect(ofDocs.filter((page) => !linked.has(addressOf(page)))).toEqual([]);
});

function isFile(pattern: string): boolean {
  const end = new RegExp(`(^|/)${pattern}$`);
  return tracked.some((file) => end.test(file));
}

/** `genmesh …` in code words, and in shell lines as `npx genmesh …` or after the `--` of a `kubectl exec`. */
function callsIn(page: string): { page: string; words: string[] }[] {
  const inline = [...proseOf(page).matchAll(/`(?:npx )?genmesh ([^`]+)`/g)];
  const blocks = [...read(page).matchAll(fence)].map(([block]) => block.replaceAll(/\\\n\s*/g, ""));
  const lines = blocks.flatMap((block) => [
    ...block.matchAll(/^\s*(?:npx genmesh|kubectl .* -- genmesh) (.+)$/gm),
  ]);
  return [...inline, ...lines].map(([, call = ""]) => ({
    page,
    words: [...call.matchAll(/"[^"]*"|\S+/g)].map(([word]) => word),
  }));
}

/** The first words must be a command, and the options must be its own. Arguments are not checked. */
function faultOfCall(program: Command, words: readonly string[]): string | undefined {
  let command = program;
  const known = new Set(program.options.map(({ long }) => long));
  for (const word of words) {
    const next = command.commands.find((one) => one.name() === word);
    if (!next) break;
    command = next;
    for (const { long } of command.options) known.add(long);
  }
  if (command === program) return "no such command";
  // A group of commands may be named alone.
  const rest = words.slice(1);
  if (command.commands.length > 0 && rest.length > 0) return `no ${rest[0]} of ${command.name()}`;
  const unknown = words.filter((word) => word.startsWith("--") && !known.has(word));
  return unknown.length === 0 ? undefined : `no option ${unknown.join(", ")}`;
}
