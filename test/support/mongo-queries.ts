import type { CommandStartedEvent, Db, Document } from "mongodb";
import type { MongoIndex } from "#kit/store/mongo/migrate.ts";

/** A sent query, with the facts by which an index serves it. */
export interface Query {
  collection: string;
  filter: Document;
  sort: Record<string, number>;
  /** For people, for example "find text_usage {dueAt: range} by dueAt". */
  shape: string;
}

/** Collects each shape of query once. */
export interface QueryWatch {
  onCommand(event: CommandStartedEvent): void;
  queries(): Query[];
}

export function createQueryWatch(): QueryWatch {
  const seen = new Map<string, Query>();
  return {
    onCommand({ commandName, command }) {
      for (const { filter = {}, sort = {} } of selectionsOf(commandName, command)) {
        const collection = String(command[commandName]);
        const fields = [...Object.entries(shapeOf(filter))].map(([name, how]) => `${name}: ${how}`);
        const order = sortOf(sort);
        const shape = `${commandName} ${collection} {${fields.join(", ")}} by ${Object.keys(order)}`;
        if (!seen.has(shape)) seen.set(shape, { collection, filter, sort: order, shape });
      }
    },
    queries: () => [...seen.values()],
  };
}

/** Shapes without an index that serves them, and indexes that serve no shape. */
export function judge(
  queries: readonly Query[],
  declared: Record<string, readonly MongoIndex[]>,
): { unserved: string[]; unused: string[] } {
  const own: MongoIndex = { name: "_id_", key: { _id: 1 }, unique: true };
  const used = new Set<string>();
  const unserved = queries.filter(({ collection, filter, sort }) => {
    const candidates = [own, ...(declared[collection] ?? [])];
    const serving = candidates.filter((index) => serves(index, filter, sort));
    for (const { name } of serving) used.add(`${collection} ${name}`);
    return serving.length === 0;
  });
  const names = Object.entries(declared).flatMap(([collection, list]) =>
    list.map(({ name }) => `${collection} ${name}`),
  );
  return {
    unserved: unserved.map(({ shape }) => shape),
    unused: names.filter((name) => !used.has(name)),
  };
}

/** Queries whose plan reads a whole collection, by the server's own report. Empty where its plans are not MongoDB's. */
export async function scans(db: Db, queries: readonly Query[]): Promise<string[]> {
  const found: string[] = [];
  for (const { collection, filter, sort, shape } of queries) {
    const plan = await db
      .collection(collection)
      .find(filter)
      .sort(sort as Record<string, 1 | -1>)
      .explain("queryPlanner");
    if (stagesOf(plan.queryPlanner?.winningPlan).includes("COLLSCAN")) found.push(shape);
  }
  return found;
}

type How = "equal" | "few" | "some" | "range" | "other";

/** Values of two fields together for which MongoDB merges sorted parts of an index. It merges 200 at most. */
const fewValues = 14;

/** Fields of the filter that an index may help with, and the way in which each is bound. */
function shapeOf(filter: Document): Record<string, How> {
  const fields: Record<string, How> = {};
  for (const [name, value] of Object.entries(filter)) {
    fields[name] = name.startsWith("$") ? "other" : howBound(value);
  }
  return fields;
}

function howBound(value: unknown): How {
  const operators =
    typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype
      ? Object.keys(value)
      : [];
  if (operators.length === 0 || operators[0] === "$eq") return "equal";
  if (operators[0] === "$in") {
    return (value as { $in: unknown[] }).$in.length <= fewValues ? "few" : "some";
  }
  return operators.every((one) => /^\$[gl]te?$/.test(one)) ? "range" : "other";
}

/** The rule of equality, sort, range. */
function serves(
  { key, unique, partial = {} }: MongoIndex,
  filter: Document,
  sort: Record<string, number>,
): boolean {
  const bound = shapeOf(filter);
  // A partial index has only the documents that match its condition.
  if (Object.keys(partial).some((field) => bound[field] === undefined)) return false;
  const fields = Object.keys(key);
  const order = Object.keys(sort);
  let at = 0;
  while (at < fields.length && isPoint(bound[fields[at] ?? ""], order)) at++;
  // One document, or one for each value, so the order does not matter.
  if (unique && at === fields.length) return true;
  const open = order.filter((field) => !fields.slice(0, at).includes(field));
  const next = fields.slice(at, at + open.length);
  const isSorted = open.every((field, i) => field === next[i]) && inOneDirection(open, sort, key);
  if (!isSorted) return false;
  // A partial index may itself be the selection.
  const isSelection = Object.entries(partial).some(([field, value]) => filter[field] === value);
  return at > 0 || isSelection || bound[fields[0] ?? ""] === "range";
}

function isPoint(how: How | undefined, order: readonly string[]): boolean {
  return how === "equal" || how === "few" || (how === "some" && order.length === 0);
}

function inOneDirection(
  fields: readonly string[],
  sort: Record<string, number>,
  key: Record<string, number>,
): boolean {
  return new Set(fields.map((field) => (sort[field] ?? 1) * (key[field] ?? 1))).size <= 1;
}

function selectionsOf(
  commandName: string,
  command: Document,
): { filter?: Document; sort?: unknown }[] {
  switch (commandName) {
    case "find":
      return [command];
    case "findAndModify":
      return [{ filter: command.query, sort: command.sort }];
    case "update":
      return command.updates.map(({ q }: Document) => ({ filter: q }));
    case "delete":
      return command.deletes.map(({ q }: Document) => ({ filter: q }));
    case "aggregate": {
      const [{ $match: filter } = {}] = command.pipeline;
      if (!filter) throw new Error("an aggregate that does not begin with what it selects");
      return [{ filter }];
    }
    case "count":
    case "distinct":
      throw new Error(`${commandName}: its shape cannot be read`);
    default:
      return [];
  }
}

function sortOf(sort: unknown): Record<string, number> {
  const entries = sort instanceof Map ? [...sort] : Object.entries(sort ?? {});
  return Object.fromEntries(entries.map(([field, direction]) => [field, Number(direction)]));
}

function stagesOf(plan: Document | undefined): string[] {
  if (!plan) return [];
  const inner = [plan.inputStage, ...(plan.inputStages ?? []), plan.queryPlan];
  return [String(plan.stage ?? ""), ...inner.flatMap(stagesOf)];
}
