// Reads YAML as plain data, and says where in the file each part is. `parse.ts` judges the data.

import {
  type Document,
  isAlias,
  isCollection,
  isMap,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  visit,
  type YAMLError,
} from "yaml";
import type { FaultPath, FoundFault } from "#kit/base/valid-parts.ts";
import { maxAliasUses, maxDepth } from "./limits.ts";

/** A YAML file as plain data. */
interface YamlFile {
  /** Must not be changed: all readers of the same text share the same value. */
  value: unknown;
  /** Faults of the notation itself: syntax, duplicate keys, aliases without end. */
  faults: FoundFault[];
  /** The position of the deepest part of `path` that the file holds: `line 3, column 5`, both from 1. */
  positionOf(path: FaultPath): string | undefined;
}

/** The file that was read last, until memory is collected. */
let last: { text: string; file: WeakRef<YamlFile> } | undefined;

/**
 * Reads YAML 1.2 with its core types (so `16:9` is text and `no` is not a boolean), even in a file that claims another version. A
 * duplicate key, an unknown tag or a second document is a fault. The names of workflows, the entries and the watch of a catalog read
 * one text in turn. Reading it takes a tenth of a second at a start, so it is read once.
 */
export function readYaml(text: string): YamlFile {
  const known = last?.text === text ? last.file.deref() : undefined;
  if (known) return known;
  const file = parse(text);
  last = { text, file: new WeakRef(file) };
  return file;
}

function parse(text: string): YamlFile {
  const lines = new LineCounter();
  const document = parseDocument(text, {
    schema: "core",
    resolveKnownTags: false,
    stringKeys: true,
    prettyErrors: false,
    lineCounter: lines,
    logLevel: "error",
  });
  const positionOf = (path: FaultPath) => positionIn(document, lines, path);
  const faults: FoundFault[] = [...document.errors, ...document.warnings].map((error) => ({
    path: error.code === "MULTIPLE_DOCS" ? [] : pathAt(document.contents, error.pos[0]),
    message: `${wordsOf(error)} (${positionText(lines, error.pos[0])})`,
  }));
  faults.push(...prototypeKeys(document));
  if (faults.length > 0) return { value: undefined, faults, positionOf };
  try {
    return { value: document.toJS({ maxAliasCount: maxAliasUses }), faults, positionOf };
  } catch (error) {
    const message = error instanceof Error ? firstLine(error.message) : "cannot be read";
    return { value: undefined, faults: [{ path: [], message }], positionOf };
  }
}

function wordsOf({ code, message }: YAMLError): string {
  return code === "MULTIPLE_DOCS" ? "must hold one YAML document" : firstLine(message);
}

// The library's texts quote at most a character or the name of an anchor, never a value.
function firstLine(message: string): string {
  return message.split("\n", 1)[0] ?? "";
}

/** Objects that are made from such a key would lose it without notice. */
function prototypeKeys(document: Document): FoundFault[] {
  const faults: FoundFault[] = [];
  visit(document, {
    Pair(_, pair) {
      if (!isScalar(pair.key) || pair.key.value !== "__proto__") return;
      faults.push({
        path: pathAt(document.contents, pair.key.range?.[0] ?? 0),
        message: "unknown key",
      });
    },
  });
  return faults;
}

/** The innermost key or item that begins at or before `offset` and has not ended there. */
function pathAt(root: unknown, offset: number): FaultPath {
  const path: (string | number)[] = [];
  let node = root;
  while (isCollection(node) && covers(node, offset) && path.length < maxDepth) {
    const items: readonly unknown[] = node.items;
    const index = items.findLastIndex((item) => {
      const start = startOf(isPair(item) ? item.key : item);
      return start !== undefined && start <= offset;
    });
    const item = items[index];
    if (item === undefined) break;
    path.push(isPair(item) ? keyText(item.key) : index);
    node = isPair(item) ? item.value : item;
  }
  return path;
}

function covers(node: unknown, offset: number): boolean {
  const range = (node as { range?: readonly number[] | null } | null)?.range;
  return range ? (range[0] ?? 0) <= offset && offset <= (range[1] ?? 0) : false;
}

function keyText(key: unknown): string {
  return isScalar(key) ? String(key.value) : "?";
}

function positionText(lines: LineCounter, offset: number): string {
  const { line, col } = lines.linePos(offset);
  return `line ${line}, column ${col}`;
}

function positionIn(document: Document, lines: LineCounter, path: FaultPath): string | undefined {
  let node: unknown = document.contents;
  let start = startOf(node);
  for (const part of path) {
    if (isAlias(node)) node = node.resolve(document);
    if (isMap(node)) {
      const pair = node.items.find((item) => keyText(item.key) === String(part));
      if (!pair) break;
      start = startOf(pair.key) ?? start;
      node = pair.value;
    } else if (isSeq(node) && typeof part === "number" && part < node.items.length) {
      node = node.items[part];
      start = startOf(node) ?? start;
    } else break;
  }
  return start === undefined ? undefined : positionText(lines, start);
}

function startOf(node: unknown): number | undefined {
  return (node as { range?: readonly number[] | null } | null)?.range?.[0];
}
