import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildConsole } from "./build.ts";

/**
 * Bytes compressed by gzip. A visitor waits for the first scripts and the style, and later for a screen's own. No visitor waits for all of them:
 * an operator's screens are loaded when they are opened.
 */
const budgets = { firstScripts: 40_000, style: 10_000, all: 175_000 };

let folder: string;
let page: string;
let start: string;
const assets = new Map<string, string>();

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "genmesh-console-"));
  await buildConsole(folder);
  page = await readFile(join(folder, "index.html"), "utf8");
  start = await readFile(join(folder, "start.js"), "utf8");
  for (const name of await readdir(join(folder, "assets"))) {
    assets.set(name, await readFile(join(folder, "assets", name), "utf8"));
  }
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const compressed = (names: Iterable<string>) =>
  [...names].reduce((bytes, name) => bytes + gzipSync(assets.get(name) ?? "").length, 0);

/** A script and all that it imports before it runs. */
function withImports(name: string, found = new Set<string>()): Set<string> {
  if (found.has(name)) return found;
  found.add(name);
  const statements = (assets.get(name) ?? "").matchAll(/(?:from|import)\s*"\.\/([^"]+)"/g);
  for (const [, imported] of statements) withImports(imported ?? "", found);
  return found;
}

describe("the console's build", () => {
  test("the first screen stays within its budget", () => {
    const named = [...page.matchAll(/(?:src|href)="\/console\/assets\/([^"]+\.js)"/g)];
    const first = new Set(named.flatMap(([, name]) => [...withImports(name ?? "")]));
    // The overview is the first screen after signing in.
    const overview = [...assets.keys()].find((name) => name.startsWith("overview-"));
    for (const name of withImports(overview ?? "")) first.add(name);
    expect(overview).toBeDefined();
    expect(compressed(first) + gzipSync(start).length).toBeLessThanOrEqual(budgets.firstScripts);
  });

  test("one style sheet, within its budget", () => {
    const sheets = [...assets.keys()].filter((name) => name.endsWith(".css"));
    expect(sheets).toHaveLength(1);
    expect(compressed(sheets)).toBeLessThanOrEqual(budgets.style);
  });

  test("everything together stays within its budget", () => {
    const others = gzipSync(page).length + gzipSync(start).length;
    expect(compressed(assets.keys()) + others).toBeLessThanOrEqual(budgets.all);
  });

  test("names carry a hash, and what the page names is there", () => {
    for (const name of assets.keys()) expect(name).toMatch(/^[\w-]+-[\w-]{8}\.(js|css|svg)$/);
    const named = [...page.matchAll(/"\/console\/assets\/([^"]+)"/g)].map(([, name]) => name);
    expect(named.length).toBeGreaterThan(2);
    expect(page).toContain('<script src="/console/start.js"></script>');
    for (const name of named) expect([...assets.keys()]).toContain(name);
  });

  test("the page holds no script, no style and no placeholder of its own", () => {
    expect(page).not.toMatch(/<style| style=| on\w+=|<script(?![^>]*src=)|\{\{/);
  });
});
