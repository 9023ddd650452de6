import { readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

const statement =
  /(?:^|[\s;])(?:import|export)(\s+type)?[^"';]*?from\s+"([^"]+)"|import\(\s*"([^"]+)"\s*\)|^import\s+"([^"]+)"/gm;

/** The imports of a file: files by their path from the root, packages by name. With `values`, imports of types are left out. */
export function importsOf(file: string, { values = false } = {}): string[] {
  const found = readFileSync(join(root, file), "utf8").matchAll(statement);
  return [...found].flatMap(([, type, from, dynamic, bare]) => {
    if (values && type !== undefined) return [];
    const name = from ?? dynamic ?? bare ?? "";
    if (name.startsWith(".")) return [relative(root, join(root, dirname(file), name))];
    return [name.replace(/^#(kit|common)\//, "services/$1/").replace(/^#proto\//, "proto/gen/")];
  });
}

/** Files with the imports of each. */
export type ImportGraph = ReadonlyMap<string, readonly string[]>;

/** The imports among some files. */
export function importGraph(files: readonly string[], options?: { values?: boolean }): ImportGraph {
  const all = new Set(files);
  return new Map(
    files.map((file) => [
      file,
      [...new Set(importsOf(file, options))].filter((to) => all.has(to) && to !== file),
    ]),
  );
}

/** A chain of imports that ends at its beginning. Undefined where there is none. */
export function importCircle(graph: ImportGraph): string[] | undefined {
  const done = new Set<string>();
  const path: string[] = [];
  const visit = (file: string): string[] | undefined => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file];
    if (done.has(file)) return undefined;
    path.push(file);
    for (const to of graph.get(file) ?? []) {
      const circle = visit(to);
      if (circle) return circle;
    }
    path.pop();
    done.add(file);
    return undefined;
  };
  for (const file of graph.keys()) {
    const circle = visit(file);
    if (circle) return circle;
  }
  return undefined;
}

/** The longest chain of imports in a graph without circles, from its first file to its last. */
export function longestImportChain(graph: ImportGraph): string[] {
  const known = new Map<string, string[]>();
  const from = (file: string): string[] => {
    const before = known.get(file);
    if (before) return before;
    const chains = (graph.get(file) ?? []).map(from);
    const chain = [file, ...chains.reduce((a, b) => (b.length > a.length ? b : a), [])];
    known.set(file, chain);
    return chain;
  };
  return [...graph.keys()].map(from).reduce((a, b) => (b.length > a.length ? b : a), []);
}
