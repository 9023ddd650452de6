// Finds changes of an OpenAPI description that break a client made from the older one.

/** A schema, or any other object of a description. */
// biome-ignore lint/suspicious/noExplicitAny: descriptions of every shape.
type Node = any;

/** The direction of a value. A request may ask for less than before, and an answer may have more. */
type Way = "request" | "answer";

interface Comparison {
  older: Node;
  newer: Node;
  /** Pairs of schemas under way, because a schema may refer to itself. */
  seen: Set<string>;
  found: string[];
}

const methods = ["get", "post", "put", "patch", "delete"];

/** The changes that break clients, each in one line. */
export function breakingChanges(older: Node, newer: Node): string[] {
  const all: Comparison = { older, newer, seen: new Set(), found: [] };
  for (const [path, item] of Object.entries<Node>(older.paths)) {
    for (const method of methods.filter((one) => item[one])) {
      const name = `${method.toUpperCase()} ${path}`;
      const next = newer.paths[path]?.[method];
      if (!next) all.found.push(`${name} is gone`);
      else compareOperation(name, item[method], next, all);
    }
  }
  return all.found;
}

function compareOperation(name: string, from: Node, to: Node, all: Comparison): void {
  if (from.operationId !== to.operationId) all.found.push(`${name} has another operationId`);
  const parameters = (operation: Node) =>
    new Map<string, Node>(
      (operation.parameters ?? []).map((one: Node) => [`${one.in} ${one.name}`, one]),
    );
  const had = parameters(from);
  const has = parameters(to);
  for (const [key, one] of had) {
    const next = has.get(key);
    if (!next) all.found.push(`${name}: ${key} is gone`);
    else compare(`${name} ${key}`, one.schema, next.schema, "request", all);
  }
  for (const [key, one] of has) {
    if (one.required && !had.get(key)?.required) all.found.push(`${name}: ${key} is required`);
  }
  const body = from.requestBody?.content ?? {};
  if (to.requestBody?.required && !from.requestBody?.required) {
    all.found.push(`${name}: a body is required`);
  }
  compareContent(name, body, to.requestBody?.content ?? {}, "request", all);
  for (const [status, answer] of Object.entries<Node>(from.responses)) {
    if (!status.startsWith("2")) continue;
    const next = to.responses[status];
    if (!next) all.found.push(`${name}: ${status} is gone`);
    else compareContent(`${name} ${status}`, answer.content, next.content, "answer", all);
  }
}

function compareContent(name: string, from: Node, to: Node, way: Way, all: Comparison): void {
  for (const [type, media] of Object.entries<Node>(from ?? {})) {
    const next = to?.[type];
    if (!next) all.found.push(`${name}: ${type} is gone`);
    // No schema describes a whole stream of events, only the data of one.
    else if (type !== "text/event-stream") compare(name, media.schema, next.schema, way, all);
  }
}

/** Compares two schemas. Those that are unions are compared only where both name the same members. */
function compare(name: string, before: Node, after: Node, way: Way, all: Comparison): void {
  const from = resolved(before, all.older);
  const to = resolved(after, all.newer);
  if (!from || !to) return;
  const pair = JSON.stringify([way, before?.$ref ?? from, after?.$ref ?? to]);
  if (all.seen.has(pair)) return;
  all.seen.add(pair);
  const [had, has] = [typesOf(from), typesOf(to)];
  const narrow = way === "request" ? had.filter((one) => !fits(one, has)) : [];
  const wide = way === "answer" ? has.filter((one) => !fits(one, had)) : [];
  if (had.length > 0 && has.length > 0 && [...narrow, ...wide].length > 0) {
    all.found.push(`${name}: ${had.join("|")} became ${has.join("|")}`);
    return;
  }
  compareValues(name, from, to, way, all);
  compareProperties(name, from, to, way, all);
  if (from.items && to.items) compare(`${name}[]`, from.items, to.items, way, all);
}

function compareValues(name: string, from: Node, to: Node, way: Way, all: Comparison): void {
  const [had, has] = [valuesOf(from), valuesOf(to)];
  if (way === "request" && has) {
    const gone = had?.filter((one) => !has.includes(one)) ?? ["any value"];
    for (const one of gone) all.found.push(`${name}: ${one} is not taken any more`);
  }
  if (way !== "request") return;
  for (const bound of ["minimum", "minLength", "minItems"]) {
    if (to[bound] > (from[bound] ?? -Infinity)) all.found.push(`${name}: ${bound} rose`);
  }
  for (const bound of ["maximum", "maxLength", "maxItems"]) {
    if (to[bound] < (from[bound] ?? Infinity)) all.found.push(`${name}: ${bound} fell`);
  }
}

function compareProperties(name: string, from: Node, to: Node, way: Way, all: Comparison): void {
  const [was, is] = [new Set(from.required ?? []), new Set(to.required ?? [])];
  for (const [property, schema] of Object.entries<Node>(from.properties ?? {})) {
    const next = to.properties?.[property];
    const path = `${name}.${property}`;
    if (next) compare(path, schema, next, way, all);
    else if (to.properties) all.found.push(`${path} is gone`);
    if (way === "answer" && was.has(property) && !is.has(property)) {
      all.found.push(`${path} may be absent`);
    }
  }
  if (way !== "request") return;
  for (const property of is) {
    if (!was.has(property)) all.found.push(`${name}.${property} is required`);
  }
}

function resolved(schema: Node, whole: Node): Node {
  const name = schema?.$ref?.match(/^#\/components\/schemas\/(.+)$/)?.[1];
  return name === undefined ? schema : resolved(whole.components.schemas[name], whole);
}

function typesOf({ type, const: value }: Node): string[] {
  if (type !== undefined) return [type].flat();
  return value === undefined ? [] : [typeof value];
}

/** Every integer is a number. */
function fits(type: string, types: readonly string[]): boolean {
  return types.includes(type) || (type === "integer" && types.includes("number"));
}

/** The only values that are allowed. Undefined: any. */
function valuesOf({ enum: values, const: value }: Node): unknown[] | undefined {
  if (value !== undefined) return [value];
  return values?.filter((one: unknown) => one !== null);
}
