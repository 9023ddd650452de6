// Reads a catalog file and its workflow files from disk, and notices when they change. It does not judge them: `parse.ts` does.

import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { dirname, join } from "node:path";
import { isJsonObject } from "#kit/base/json.ts";
import type { Clock } from "#kit/time/clock.ts";
import { workflowName } from "./calls.ts";
import {
  maxFileBytes,
  maxUnsettledLooks,
  maxWorkflowBytes,
  maxWorkflows,
  pollMs,
} from "./limits.ts";
import { readYaml } from "./yaml.ts";

/** A path's content at one moment: its text, or the reason for having none. */
export type FileRead = { text: string; fault?: never } | { text?: never; fault: string };

/** The workflow files that a catalog names, by their names in it. */
export type WorkflowFiles = ReadonlyMap<string, FileRead>;

/** A catalog's content at one moment, with the workflow files where it names some. */
export type CatalogRead =
  | {
      text: string;
      workflows?: WorkflowFiles;
      /** Of the version in the store that it is. Absent: it is a file. */
      number?: number;
      fault?: never;
    }
  | { text?: never; workflows?: never; number?: never; fault: string };

/** Reads a catalog as it is now. */
export type CatalogReader = () => Promise<CatalogRead>;

/** Reads a catalog file and the workflow files that it names, through any links to them. Never rejects. */
export function readCatalogFile(path: string): Promise<CatalogRead> {
  return catalogReader(path)();
}

/** Reads the file again at each call. The names of workflows are looked up again only where its text has changed. */
export function catalogReader(path: string): CatalogReader {
  let known: { text: string; names: readonly string[] } | undefined;
  return async () => {
    const read = await readText(path, maxFileBytes);
    if (read.fault !== undefined) return read;
    const { text } = read;
    if (known?.text !== text) known = { text, names: workflowNames(text) };
    if (known.names.length === 0) return { text };
    return { text, workflows: await readWorkflows(dirname(path), known.names) };
  };
}

/** The workflow files that a text names, from a folder. */
export function workflowsIn(folder: string, text: string): Promise<Map<string, FileRead>> {
  return readWorkflows(folder, workflowNames(text));
}

async function readWorkflows(
  folder: string,
  names: readonly string[],
): Promise<Map<string, FileRead>> {
  const workflows = new Map<string, FileRead>();
  for (const name of names) {
    workflows.set(name, await readText(join(folder, name), maxWorkflowBytes));
  }
  return workflows;
}

/** The names of `workflow` in a catalog's calls. Names that lead out of its folder are faults, and are not read. */
function workflowNames(text: string): string[] {
  if (!text.includes("workflow")) return [];
  const { value } = readYaml(text);
  const models = isJsonObject(value) && Array.isArray(value.models) ? value.models : [];
  const calls = models.filter(isJsonObject).flatMap(({ call }) => {
    if (!isJsonObject(call)) return [];
    return [call, ...Object.values(call).filter(isJsonObject)];
  });
  const names = calls.flatMap((call) => workflowName.safeParse(call.workflow).data ?? []);
  return [...new Set(names)].slice(0, maxWorkflows);
}

async function readText(path: string, maxBytes: number): Promise<FileRead> {
  try {
    // Non-blocking, because opening a pipe would otherwise wait for its writer.
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    if (!(await file.stat()).isFile()) return { fault: "the path does not lead to a regular file" };
    const chunks: Buffer[] = [];
    // `end` is inclusive, so one byte more than allowed is read.
    for await (const chunk of file.createReadStream({ end: maxBytes, autoClose: false })) {
      chunks.push(chunk);
    }
    const bytes = Buffer.concat(chunks);
    if (bytes.length > maxBytes) return { fault: `the file has more than ${maxBytes} bytes` };
    return { text: new TextDecoder("utf-8", { fatal: true }).decode(bytes) };
  } catch (error) {
    if (error instanceof TypeError) return { fault: "the file is not UTF-8" };
    const code = (error as NodeJS.ErrnoException).code;
    return { fault: `the file cannot be read (${code ?? "unknown error"})` };
  }
}

/** Reads a catalog again and again. */
export interface CatalogWatch {
  /** Reads it once. */
  look(): Promise<void>;
  /** Reads it every 500 ms until `signal` aborts. Resolves then. */
  run(signal: AbortSignal): Promise<void>;
}

/** The parts that a watch needs. */
interface CatalogWatchOptions {
  read: CatalogReader;
  clock: Clock;
  /** The content that the caller knows already. */
  known: CatalogRead;
  /** Called once for each content that differs from the one before. Must not throw. */
  changed: (read: CatalogRead) => void;
}

/**
 * Compares content, not dates. So it sees through the swapped links of a mounted ConfigMap and through coarse clocks of file systems.
 * It also needs no events, which mounts do not send. New content counts once two reads agree on it, so that a half-written file is not
 * taken for a whole one. Content that keeps changing counts after the third read. A version of the store is whole at once.
 */
export function watchCatalog({ read, clock, known, changed }: CatalogWatchOptions): CatalogWatch {
  let judged = known;
  let pending: { read: CatalogRead; looks: number } | undefined;
  let looking: Promise<void> = Promise.resolve();
  const lookOnce = async () => {
    const found = await read();
    if (same(found, judged)) {
      pending = undefined;
      return;
    }
    const isWhole = found.number !== undefined;
    const settled = isWhole || (pending !== undefined && same(found, pending.read));
    const looks = pending ? pending.looks + 1 : 0;
    if (!settled && looks < maxUnsettledLooks) {
      pending = { read: found, looks };
      return;
    }
    pending = undefined;
    judged = found;
    changed(found);
  };
  /** One after the other: what an earlier look read must not come into force after what a later one read. */
  const look = () => {
    looking = looking.then(lookOnce, lookOnce);
    return looking;
  };
  return {
    look,
    async run(signal) {
      while (!signal.aborted) {
        await clock.sleep(pollMs, signal).catch(() => {});
        if (!signal.aborted) await look();
      }
    },
  };
}

function same(a: CatalogRead, b: CatalogRead): boolean {
  if (a.number !== b.number || !sameText(a, b)) return false;
  if (a.number !== undefined) return true;
  // Equal texts name equal files.
  return [...(a.workflows ?? [])].every(([name, read]) => sameText(read, b.workflows?.get(name)));
}

function sameText(a: FileRead, b: FileRead | undefined): boolean {
  return a.text === b?.text && a.fault === b?.fault;
}
