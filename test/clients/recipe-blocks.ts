import { readFileSync } from "node:fs";

const page = readFileSync(new URL("../../docs/clients.md", import.meta.url), "utf8");
const documented = /http:\/\/127\.0\.0\.1:\d+/g;

export interface Block {
  language: string;
  code: string;
}

/** The blocks below a heading of docs/clients.md, down to the next one. They ask the server of `baseUrl` in the place of the documented one. */
export function blocksOf(heading: string, baseUrl: string): Block[] {
  const [, section = ""] = page.split(`\n## ${heading}\n`);
  const [own = ""] = section.split("\n## ");
  return [...own.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, language = "", code = ""]) => ({
    language,
    code: code.replaceAll(documented, new URL(baseUrl).origin),
  }));
}
