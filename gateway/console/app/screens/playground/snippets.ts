// Writes a request as code for curl, Python and TypeScript. `copy-as.tsx` shows it.

import {
  curlBody,
  curlTo,
  pythonArguments,
  pythonClient,
  typescriptClient,
} from "./snippet-parts.ts";
import { embeddings, images, jobs, speech, transcription, type Writers } from "./snippets-media.ts";

/** A request to show as code. */
export interface Snippet {
  path:
    | "/responses"
    | "/chat/completions"
    | "/messages"
    | "/images/generations"
    | "/videos/generations"
    | "/music/generations"
    | "/audio/speech"
    | "/audio/transcriptions"
    | "/embeddings";
  body: Record<string, unknown>;
  /** The name of the file that is sent with the body. */
  file?: string;
}

export type Language = "curl" | "python" | "typescript";

/** Inline files would fill the page, and belong to the reader. Only their beginning is shown. */
const inlineFile = /^(data:[a-z]+\/[a-z\d.+-]+;base64,).{24,}$/s;
/** Base64 without an address, as audio has it. Words have blanks long before this length. */
const inlineBytes = /^([A-Za-z\d+/]{24})[A-Za-z\d+/]{200,}={0,2}$/;

/** An official client in a language: its import, and how it is made. */
type Client = Record<"python" | "typescript", (base: string) => readonly string[]>;

const openAi: Client = {
  python: (base) => ["from openai import OpenAI", "", pythonClient(base)],
  typescript: (base) => ['import OpenAI from "openai";', "", typescriptClient(base)],
};
/** It takes the base URL without its version. */
const anthropic: Client = {
  python: () => [
    "from anthropic import Anthropic",
    "",
    `client = Anthropic(base_url="${location.origin}", api_key=os.environ["KEY"])`,
  ],
  typescript: () => [
    'import Anthropic from "@anthropic-ai/sdk";',
    "",
    `const client = new Anthropic({ baseURL: "${location.origin}", apiKey: process.env.KEY });`,
  ],
};

/** The call of an official client for text, and the place of the text in its answer. */
interface TextCall {
  client: Client;
  method: string;
  whole: { python: string; typescript: string };
  /** Tests whether a piece of a stream has text, in Python and in TypeScript. */
  test: string;
  inTypescript: string;
  /** The text of a piece. */
  piece: string;
}

const texts: Record<string, TextCall> = {
  "/responses": {
    client: openAi,
    method: "responses.create",
    whole: { python: "response.output_text", typescript: "response.output_text" },
    test: 'event.type == "response.output_text.delta"',
    inTypescript: 'event.type === "response.output_text.delta"',
    piece: "event.delta",
  },
  "/chat/completions": {
    client: openAi,
    method: "chat.completions.create",
    whole: {
      python: "response.choices[0].message.content",
      typescript: "response.choices[0].message.content",
    },
    test: "event.choices and event.choices[0].delta.content",
    inTypescript: "event.choices[0]?.delta.content",
    piece: "event.choices[0].delta.content",
  },
  "/messages": {
    client: anthropic,
    method: "messages.create",
    whole: {
      python: '"".join(one.text for one in response.content if one.type == "text")',
      typescript: 'response.content.map((one) => (one.type === "text" ? one.text : "")).join("")',
    },
    test: 'event.type == "content_block_delta" and event.delta.type == "text_delta"',
    inTypescript: 'event.type === "content_block_delta" && event.delta.type === "text_delta"',
    piece: "event.delta.text",
  },
};

const others: Partial<Record<Snippet["path"], Writers>> = {
  "/images/generations": images,
  "/videos/generations": jobs("videos"),
  "/music/generations": jobs("clips"),
  "/audio/speech": speech,
  "/audio/transcriptions": transcription,
  "/embeddings": embeddings,
};

/** The request as code that reads the key from the environment. The code never contains a real key. */
export function codeOf(language: Language, { path, body, file = "" }: Snippet): string {
  const base = `${location.origin}/v1`;
  const shown = withoutInlineFiles(body) as Record<string, unknown>;
  const other = others[path];
  if (other) return other[language]({ base, path, body: shown, file });
  const text = texts[path];
  if (language === "curl" || !text) return `${curlTo(base, path)}\n${curlBody(shown)}`;
  return language === "python" ? pythonText(base, text, shown) : typescriptText(base, text, shown);
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

function pythonText(base: string, text: TextCall, body: Record<string, unknown>): string {
  const call = `client.${text.method}(\n${pythonArguments(body)})`;
  return [
    "import os",
    ...text.client.python(base),
    ...(body.stream
      ? [
          `stream = ${call}`,
          "for event in stream:",
          `    if ${text.test}:`,
          `        print(${text.piece}, end="", flush=True)`,
        ]
      : [`response = ${call}`, `print(${text.whole.python})`]),
  ].join("\n");
}

function typescriptText(base: string, text: TextCall, body: Record<string, unknown>): string {
  const call = `await client.${text.method}(${JSON.stringify(body, null, 2)})`;
  return [
    ...text.client.typescript(base),
    ...(body.stream
      ? [
          `const stream = ${call};`,
          "for await (const event of stream) {",
          `  if (${text.inTypescript}) process.stdout.write(${text.piece});`,
          "}",
        ]
      : [`const response = ${call};`, `console.log(${text.whole.typescript});`]),
  ].join("\n");
}
