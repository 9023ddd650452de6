// Reads pages of an account's or all accounts' lines by the index that fits the filters, in SQLite and in MongoDB. Each
// database's store brings the function that reads along an index.

import { turn } from "#kit/base/in-turns.ts";
import { isJsonObject } from "#kit/base/json.ts";
import { linesReadOn, maxLookedThrough, maxSameIds } from "../base/limits.ts";
import { type Line, recordOf, textOf } from "./usage.ts";
import {
  comparePlaces,
  type LinePage,
  type LinePlace,
  type LineQuery,
  placeOf,
  usualKind,
  usualStatus,
} from "./usage-store.ts";

/** An index of an account's lines, each in the order of their places. "all" is of every line, the others are of one value each. */
export type LineIndex = "key" | "model" | "status" | "kind" | "all" | "public" | "request";

/** A part of the lines along an index. */
export interface LineStretch {
  /** Undefined: of all accounts, by "all", "status" or "kind", or, in no order, by "public" or "request". */
  accountId: string | undefined;
  index: LineIndex;
  /** The value of the index. Undefined for "all". */
  value: string | undefined;
  /** Only lines newer than the first of these places, and older than the second one. */
  above: LinePlace | undefined;
  below: LinePlace | undefined;
  /** From the oldest on. Otherwise from the newest on. */
  isRising: boolean;
  limit: number;
}

/** Reads a part. Each database has its own. */
type ReadLines = (stretch: LineStretch) => Promise<Line[]>;

/** Reads a page along its index. Goes on as long as lines that do not match leave room on it, or enough lines were searched. */
export async function searchLines(query: LineQuery, read: ReadLines): Promise<LinePage> {
  const { accountId, limit, keyId, model, status, kinds } = query;
  const index = indexFor(query);
  const value = { key: keyId, model, status, kind: kinds?.[0], all: undefined }[index];
  const isRising = query.before !== undefined;
  const lines: Line[] = [];
  const page = (next: LinePlace | undefined): LinePage => ({
    lines: isRising ? lines.reverse() : lines,
    next,
  });
  let { above, below } = boundsOf(query);
  let looked = 0;
  for (let size = limit + 1; ; size = linesReadOn) {
    const found = await read({ accountId, index, value, above, below, isRising, limit: size });
    for (const line of found) {
      if (fitsQuery(line, query)) {
        if (lines.length === limit) return page(isRising ? above : below);
        lines.push(line);
      }
      if (isRising) above = placeOf(line);
      else below = placeOf(line);
    }
    looked += found.length;
    if (found.length < size) return page(undefined);
    if (looked >= maxLookedThrough) return page(isRising ? above : below);
    // Other requests come first.
    await turn();
  }
}

/** The newest line that has this public id, or this id of a caller's request. */
export async function findLine(
  { accountId, keyId, id }: { accountId: string; keyId: string | undefined; id: string },
  read: ReadLines,
): Promise<Line | undefined> {
  const all = { above: undefined, below: undefined };
  const newest = { accountId, value: id, ...all, isRising: false, limit: maxSameIds };
  for (const index of ["public", "request"] as const) {
    const found = await read({ ...newest, index });
    const line = found.find(
      (one) => one.kind !== "refund" && (keyId === undefined || one.keyId === keyId),
    );
    if (line) return line;
  }
  return undefined;
}

/** The lines of all accounts that have this public id, or this id of a caller's request, newest first. */
export async function findLines(id: string, read: ReadLines): Promise<Line[]> {
  const of = {
    accountId: undefined,
    value: id,
    above: undefined,
    below: undefined,
    isRising: false,
  };
  const found = await Promise.all(
    (["public", "request"] as const).map((index) => read({ ...of, index, limit: maxSameIds })),
  );
  return found
    .flat()
    .filter(({ kind }) => kind !== "refund")
    .sort((one, other) => other.at - one.at);
}

/** The places between which a query's lines are: its range of time, narrowed by its cursor. */
function boundsOf({ after, before, from, until }: LineQuery) {
  const inOrder = (...places: (LinePlace | undefined)[]) =>
    places.filter((place) => place !== undefined).sort(comparePlaces);
  return { above: inOrder(from, before).at(-1), below: inOrder(until, after)[0] };
}

/** The index of a query: that of the filter that leaves the fewest lines. The other filters are checked line by line. */
function indexFor({ accountId, keyId, model, status, kinds }: LineQuery) {
  if (status !== undefined && status !== usualStatus) return "status";
  if (kinds?.length === 1 && kinds[0] !== usualKind) return "kind";
  if (accountId === undefined) return "all";
  if (keyId !== undefined) return "key";
  return model === undefined ? "all" : "model";
}

/** Does a line match the filters that the index does not cover? */
function fitsQuery(line: Line, query: LineQuery): boolean {
  const { keyId, model, upstream, status, kinds, onlyMoney } = query;
  return (
    (keyId === undefined || line.keyId === keyId) &&
    (model === undefined || line.model === model) &&
    (status === undefined || line.status === status) &&
    (kinds === undefined || kinds.includes(line.kind)) &&
    (!onlyMoney || line.amount !== 0n) &&
    (upstream === undefined || upstreamsOf(line).includes(upstream))
  );
}

/** The upstream that answered, and those at which tries failed. A lane is an upstream with one of its keys: "main", "main#2". */
function upstreamsOf(line: Line): string[] {
  const { upstream, failedTries } = recordOf(line);
  const tries = Array.isArray(failedTries) ? failedTries.filter(isJsonObject) : [];
  return [textOf(upstream), ...tries.map(({ lane }) => textOf(lane).split("#")[0] ?? "")];
}
