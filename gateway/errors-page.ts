// Writes docs/errors.md and the table of errors in the OpenAPI document from the registry of errors. Run it after a change of the
// registry.

import { mkdir, writeFile } from "node:fs/promises";
import { Code } from "@connectrpc/connect";
import { allReasons, type ErrorRow, errorRow, reasonName } from "#kit/base/errors.ts";

/** The file of the committed page. */
export const errorsPageFile = new URL("../docs/errors.md", import.meta.url);

const headings: Readonly<Record<ErrorRow["audience"], string>> = {
  public: "Answers of the public API",
  console: "Only in answers of the console",
  job: "Only in the `error` of a failed job",
  operator: "Internal calls and operator commands only",
};

/** The reasons of one audience as a Markdown table, by status and then by code. */
function errorTable(audience: ErrorRow["audience"]): string {
  const lines = rowsOf(audience).map(({ name, row }) => {
    const status = isAnswered(audience) ? ` ${row.status} |` : "";
    return `| \`${name}\` | ${grpcName(row.rpc)} |${status} \`${row.type}\` | \`${row.code}\` | ${row.message} |`;
  });
  const status = isAnswered(audience) ? " HTTP |" : "";
  const rule = isAnswered(audience) ? "---|" : "";
  return [
    `| Reason | gRPC |${status} type | code | Text |`,
    `|---|---|${rule}---|---|---|`,
    ...lines,
  ].join("\n");
}

/** Is it an answer over HTTP? */
function isAnswered(audience: ErrorRow["audience"]): boolean {
  return audience === "public" || audience === "console";
}

/** The errors that callers of the public API can get, in two columns. The browsable page has no room for more. */
export function shortErrorTable(): string {
  const lines = rowsOf("public").map(
    ({ row }) => `| ${row.status} \`${row.code}\` | ${row.message} |`,
  );
  return ["| HTTP, code | Text |", "|---|---|", ...new Set(lines)].join("\n");
}

function rowsOf(
  audience: ErrorRow["audience"],
): { name: string; row: ReturnType<typeof errorRow> }[] {
  return allReasons()
    .map((reason) => ({ name: reasonName(reason), row: errorRow(reason) }))
    .filter(({ row }) => row.audience === audience)
    .sort((a, b) => a.row.status - b.row.status || a.row.code.localeCompare(b.row.code));
}

/** The page of all reasons. */
export function errorsPage(): string {
  const sections = (["public", "console", "job", "operator"] as const).map(
    (audience) => `## ${headings[audience]}\n\n${errorTable(audience)}\n`,
  );
  return `# Errors

Generated from \`services/kit/base/error-registry.ts\` by \`node gateway/errors-page.ts\`. Over HTTP an error is
\`{"error": {"message", "type", "param", "code"}}\`; over gRPC and Connect it is a \`google.rpc.ErrorInfo\` with domain
\`genmesh\` and the reason below. \`{name}\` in a text is replaced.

${sections.join("\n")}`;
}

/** "FAILED_PRECONDITION", as gRPC writes it. */
function grpcName(code: Code): string {
  return (Code[code] ?? "Unknown").replace(/(?<=[a-z])(?=[A-Z])/g, "_").toUpperCase();
}

if (import.meta.main) {
  await mkdir(new URL(".", errorsPageFile), { recursive: true });
  await writeFile(errorsPageFile, errorsPage());
}
