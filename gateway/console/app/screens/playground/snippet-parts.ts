// Parts of code that the snippets of text and of media share.

/** The beginning of a call by curl: its address, key and type. */
export function curlTo(base: string, path: string): string {
  const key =
    path === "/messages"
      ? '-H "x-api-key: $KEY" -H "anthropic-version: 2023-06-01"'
      : '-H "Authorization: Bearer $KEY"';
  return [
    "export KEY=gm_…",
    `curl -N ${base}${path} \\`,
    `  ${key} -H "Content-Type: application/json" \\`,
  ].join("\n");
}

/** A body of curl, in single quotes. */
export function curlBody(body: Record<string, unknown>): string {
  const json = JSON.stringify(body, null, 2).replaceAll("'", "'\\''");
  return `  -d '${json}'`;
}

export const pythonClient = (base: string, more = "") =>
  `client = OpenAI(base_url="${base}", api_key=os.environ["KEY"]${more})`;

export const typescriptClient = (base: string, more = "") =>
  `const client = new OpenAI({ baseURL: "${base}", apiKey: process.env.KEY${more} });`;

/** Named arguments of a call, a line each. */
export function pythonArguments(body: Record<string, unknown>): string {
  return Object.entries(body)
    .map(([name, value]) => `    ${name}=${pythonOf(value, 1)},\n`)
    .join("");
}

/** A JSON value in the syntax of Python. */
export function pythonOf(value: unknown, depth: number): string {
  if (value === null) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (typeof value !== "object") return JSON.stringify(value);
  const isList = Array.isArray(value);
  const parts = isList
    ? value.map((one) => pythonOf(one, depth + 1))
    : Object.entries(value as object).map(
        ([name, one]) => `${JSON.stringify(name)}: ${pythonOf(one, depth + 1)}`,
      );
  const [open, close] = isList ? "[]" : "{}";
  if (parts.length === 0) return `${open}${close}`;
  const indent = "    ".repeat(depth + 1);
  return `${open}\n${parts.map((part) => `${indent}${part},\n`).join("")}${"    ".repeat(depth)}${close}`;
}
