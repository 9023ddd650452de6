import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/**
 * fal's OpenAPI documents of models (`fal.ai/api/openapi/queue/openapi.json?endpoint_id=…`). They are made from the types in fal's own
 * client (fal-js, endpoints.d.ts), which fal generates from the real documents. So they have names, types, enumerations and required
 * properties, and no bounds. Models newer than the client are unknown.
 */
export function falOpenApi(model: string): object | undefined {
  const { source, declarations } = types();
  const found = new RegExp(`"${escaped(model)}": \\{\\s+input: (\\w+);\\s+output: (\\w+);`).exec(
    source,
  );
  if (!found) return undefined;
  const schemas: Record<string, object> = {};
  const waiting = found.slice(1, 3);
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    if (schemas[name]) continue;
    const text = declarations.get(name);
    schemas[name] = text === undefined ? {} : schemaOf(text, (used) => waiting.push(used));
  }
  const [, input, output] = found;
  const json = (name: string | undefined) => ({
    content: { "application/json": { schema: { $ref: `#/components/schemas/${name}` } } },
  });
  return {
    openapi: "3.0.4",
    info: { title: `Queue OpenAPI for ${model}`, version: "1.0.0" },
    components: { schemas },
    paths: {
      [`/${model}`]: { post: { requestBody: { required: true, ...json(input) } } },
      [`/${model}/requests/{request_id}`]: { get: { responses: { 200: json(output) } } },
    },
  };
}

let read: { source: string; declarations: Map<string, string> } | undefined;

/** The file and the text of each of its types, read once. */
function types() {
  if (read) return read;
  const client = fileURLToPath(import.meta.resolve("@fal-ai/client"));
  const source = readFileSync(client.replace(/src\/.*$/, "src/types/endpoints.d.ts"), "utf8");
  const plain = source.replace(/\/\*[\s\S]*?\*\//g, "");
  const found = plain.matchAll(
    /^export (?:type|interface) (\w+) (?:= )?([\s\S]*?)(?=^export |^declare )/gm,
  );
  const declarations = new Map([...found].map(([, name = "", text = ""]) => [name, text.trim()]));
  read = { source: plain, declarations };
  return read;
}

/** The schema of a type's text. `use` is called with each type that it names. */
function schemaOf(text: string, use: (name: string) => void): object {
  const type = text.trim().replace(/;$/, "").trim();
  if (type.startsWith("{")) return objectOf(type.slice(1, -1), use);
  const parts = split(type, "|");
  if (parts.length > 1) {
    const all = parts.map((part) => schemaOf(part, use));
    const constants = all.flatMap((one) => ("const" in one ? [one.const] : []));
    return constants.length === all.length ? { enum: constants } : { anyOf: all };
  }
  const both = split(type, "&");
  if (both.length > 1) return { allOf: both.map((part) => schemaOf(part, use)) };
  const list = /^Array<([\s\S]+)>$/.exec(type)?.[1] ?? /^([\s\S]+)\[\]$/.exec(type)?.[1];
  if (list !== undefined) return { type: "array", items: schemaOf(list, use) };
  if (/^["'\d-]/.test(type)) return { const: JSON.parse(type.replace(/^'|'$/g, '"')) };
  if (/^(string|number|boolean)$/.test(type)) return { type };
  if (type === "true" || type === "false") return { const: type === "true" };
  // A browser's type for a file. The client uploads it and sends its URL.
  if (type === "Blob") return { type: "string" };
  if (!/^\w+$/.test(type) || /^(any|unknown|undefined|null)$/.test(type)) return {};
  use(type);
  return { $ref: `#/components/schemas/${type}` };
}

function objectOf(body: string, use: (name: string) => void): object {
  const fields = split(body, ";").flatMap((field) => {
    const found = /^\s*"?([\w-]+)"?(\??):([\s\S]+)$/.exec(field);
    return found
      ? [{ name: found[1] ?? "", isOptional: found[2] === "?", type: found[3] ?? "" }]
      : [];
  });
  return {
    type: "object",
    properties: Object.fromEntries(fields.map(({ name, type }) => [name, schemaOf(type, use)])),
    required: fields.filter(({ isOptional }) => !isOptional).map(({ name }) => name),
  };
}

/** The parts between separators outside of brackets and quotes. */
function split(text: string, separator: string): string[] {
  const parts = [""];
  let depth = 0;
  let isQuoted = false;
  for (const char of text) {
    if (char === '"') isQuoted = !isQuoted;
    else if (!isQuoted && /[{<([]/.test(char)) depth++;
    else if (!isQuoted && /[}>)\]]/.test(char)) depth--;
    if (char === separator && depth === 0 && !isQuoted) parts.push("");
    else parts[parts.length - 1] += char;
  }
  return parts.map((part) => part.trim()).filter((part) => part !== "");
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
