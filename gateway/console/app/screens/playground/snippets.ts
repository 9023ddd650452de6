/** A request to show as code. */
export interface Snippet {
  path:
    | "/responses"
    | "/chat/completions"
    | "/images/generations"
    | "/videos/generations"
    | "/music/generations"
    | "/speech/generations";
  body: Record<string, unknown>;
}

export type Language = "curl" | "python" | "typescript";

/** Inline files would fill the page, and belong to the reader. Only their beginning is shown. */
const inlineFile = /^(data:[a-z]+\/[a-z\d.+-]+;base64,).{24,}$/s;
/** Base64 without an address, as audio has it. Words have blanks long before this length. */
const inlineBytes = /^([A-Za-z\d+/]{24})[A-Za-z\d+/]{200,}={0,2}$/;
/** The field of a family's outputs. */
const outputs: Record<string, string> = {
  "/images/generations": "images",
  "/videos/generations": "videos",
  "/music/generations": "clips",
};

/** The call of OpenAI's official clients for text, and the place of the text in its answer. */
interface TextCall {
  method: string;
  whole: string;
  /** Tests whether a piece of a stream has text, in Python and in TypeScript. */
  test: string;
  inTypescript: string;
  /** The text of a piece. */
  piece: string;
}

const texts: Record<string, TextCall> = {
  "/responses": {
    method: "responses.create",
    whole: "response.output_text",
    test: 'event.type == "response.output_text.delta"',
    inTypescript: 'event.type === "response.output_text.delta"',
    piece: "event.delta",
  },
  "/chat/completions": {
    method: "chat.completions.create",
    whole: "response.choices[0].message.content",
    test: "event.choices and event.choices[0].delta.content",
    inTypescript: "event.choices[0]?.delta.content",
    piece: "event.choices[0].delta.content",
  },
};

/** The request as code that reads the key from the environment. The code never contains a real key. */
export function codeOf(language: Language, { path, body }: Snippet): string {
  const base = `${location.origin}/v1`;
  const shown = withoutInlineFiles(body) as Record<string, unknown>;
  if (language === "curl") return curlOf(base, path, shown);
  const text = texts[path];
  if (text) {
    return language === "python"
      ? pythonText(base, text, shown)
      : typescriptText(base, text, shown);
  }
  const field = outputs[path];
  return language === "python"
    ? pythonMedia(base, path, shown, field)
    : typescriptMedia(base, path, shown, field);
}

function withoutInlineFiles(value: unknown): unknown {
  if (typeof value === "string")
    return value.replace(inlineFile, "$1…").replace(inlineBytes, "$1…");
  if (Array.isArray(value)) return value.map(withoutInlineFiles);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [name, withoutInlineFiles(one)]),
  );
}

function curlOf(base: string, path: string, body: Record<string, unknown>): string {
  const json = JSON.stringify(body, null, 2).replaceAll("'", "'\\''");
  return [
    "export KEY=gm_…",
    `curl -N ${base}${path} \\`,
    '  -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" \\',
    `  -d '${json}'`,
  ].join("\n");
}

function pythonText(base: string, text: TextCall, body: Record<string, unknown>): string {
  const call = `client.${text.method}(\n${pythonArguments(body)})`;
  return [
    "import os",
    "from openai import OpenAI",
    "",
    `client = OpenAI(base_url="${base}", api_key=os.environ["KEY"])`,
    ...(body.stream
      ? [
          `stream = ${call}`,
          "for event in stream:",
          `    if ${text.test}:`,
          `        print(${text.piece}, end="", flush=True)`,
        ]
      : [`response = ${call}`, `print(${text.whole})`]),
  ].join("\n");
}

function pythonArguments(body: Record<string, unknown>): string {
  return Object.entries(body)
    .map(([name, value]) => `    ${name}=${pythonOf(value, 1)},\n`)
    .join("");
}

/** A JSON value in the syntax of Python. */
function pythonOf(value: unknown, depth: number): string {
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

function typescriptText(base: string, text: TextCall, body: Record<string, unknown>): string {
  const call = `await client.${text.method}(${JSON.stringify(body, null, 2)})`;
  return [
    'import OpenAI from "openai";',
    "",
    `const client = new OpenAI({ baseURL: "${base}", apiKey: process.env.KEY });`,
    ...(body.stream
      ? [
          `const stream = ${call};`,
          "for await (const event of stream) {",
          `  if (${text.inTypescript}) process.stdout.write(${text.piece});`,
          "}",
        ]
      : [`const response = ${call};`, `console.log(${text.whole});`]),
  ].join("\n");
}

function pythonMedia(
  base: string,
  path: string,
  body: Record<string, unknown>,
  field: string | undefined,
): string {
  const send = `requests.post(f"{api}${path}", headers=auth, json=${pythonOf(body, 0)})`;
  return [
    field ? "import os, time" : "import os",
    "import requests",
    "",
    `api = "${base}"`,
    'auth = {"Authorization": f"Bearer {os.environ[\'KEY\']}"}',
    ...(field
      ? [
          `job = ${send}.json()`,
          'while not job["terminal"]:',
          "    time.sleep(3)",
          '    job = requests.get(job["statusUrl"], headers=auth).json()',
          `for file in job["${field}"]:`,
          '    open(file["id"], "wb").write(requests.get(file["url"], headers=auth).content)',
        ]
      : [
          `speech = ${send}.json()`,
          'audio = requests.get(speech["audio"]["url"], headers=auth).content',
          'open("speech.mp3", "wb").write(audio)',
        ]),
  ].join("\n");
}

function typescriptMedia(
  base: string,
  path: string,
  body: Record<string, unknown>,
  field: string | undefined,
): string {
  const name = field ? "job" : "speech";
  const variable = field ? "let" : "const";
  return [
    'import { writeFile } from "node:fs/promises";',
    "",
    `const api = "${base}";`,
    'const headers = { authorization: `Bearer ${process.env.KEY}`, "content-type": "application/json" };',
    `const body = JSON.stringify(${JSON.stringify(body, null, 2)});`,
    `const sent = await fetch(\`\${api}${path}\`, { method: "POST", headers, body });`,
    `${variable} ${name} = await sent.json();`,
    ...(field
      ? [
          "while (!job.terminal) {",
          "  await new Promise((resolve) => setTimeout(resolve, 3_000));",
          "  job = await (await fetch(job.statusUrl, { headers })).json();",
          "}",
          `for (const file of job.${field}) {`,
          "  await writeFile(file.id, await (await fetch(file.url, { headers })).bytes());",
          "}",
        ]
      : [
          "const audio = await fetch(speech.audio.url, { headers });",
          'await writeFile("speech.mp3", await audio.bytes());',
        ]),
  ].join("\n");
}
