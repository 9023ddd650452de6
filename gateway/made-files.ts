// Sends files that are made while they are sent: usage as CSV, entries of a journal as CSV or lines of JSON.

import { Readable } from "node:stream";
import type { FastifyReply, FastifyRequest } from "fastify";
import {
  entryColumns,
  entryDocument,
  operatorEntryColumns,
  operatorEntryCsv,
  operatorEntryDocument,
} from "#common/documents/entry-document.ts";
import { csvLine } from "#kit/base/csv.ts";
import type { Line, ListLinesResponse } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import type { Edge } from "./context.ts";
import { sendStream } from "./request.ts";

/**
 * Sends a file as it is made. `HEAD` leaves out its length like `GET` does. Fastify would report an answer without a body as one of 0
 * bytes.
 */
export function sendMade(
  edge: Edge,
  request: FastifyRequest,
  reply: FastifyReply,
  file: Readable,
): FastifyReply {
  return sendStream(edge, reply, request.method === "HEAD" ? Readable.from([]) : file);
}

/** Headers of a CSV file. */
export function csvHeaders(reply: FastifyReply, name: string): FastifyReply {
  return reply
    .header("content-type", "text/csv; charset=utf-8; header=present")
    .header("content-disposition", `attachment; filename="${name}.csv"`);
}

/** The forms of a file with entries, by their names in the query. */
export const exportFormats = { csv: "csv", jsonl: "jsonl" } as const;

type ExportFormat = keyof typeof exportFormats;

/** The lines of a file with entries, for its reader. */
interface FileLines {
  columns: readonly string[];
  csv(line: Line): string;
  document(line: Line): object;
}

/** For a caller. */
const callerLines: FileLines = {
  columns: entryColumns,
  csv(line) {
    const entry = entryDocument(line);
    return csvLine(entryColumns.map((name) => entry[name]));
  },
  document: entryDocument,
};

/** For an operator. */
export const operatorLines: FileLines = {
  columns: operatorEntryColumns,
  csv: operatorEntryCsv,
  document: operatorEntryDocument,
};

/** Headers of a file with entries. */
export function exportHeaders(reply: FastifyReply, format: ExportFormat, name: string): void {
  if (format === "csv") csvHeaders(reply, name);
  else reply.header("content-type", "application/jsonl; charset=utf-8");
}

/** All entries from `first` on, a page at a time. The first entry for which `isWanted` is false ends it. */
export function exportEntries(
  format: ExportFormat,
  first: ListLinesResponse,
  furtherPage: (token: string) => Promise<ListLinesResponse>,
  isWanted: (line: Line) => boolean = () => true,
  { columns, csv, document } = callerLines,
): Readable {
  const write = (line: Line) =>
    format === "csv" ? csv(line) : `${JSON.stringify(document(line))}\n`;
  async function* text(): AsyncIterable<string> {
    if (format === "csv") yield csvLine(columns);
    for (let { lines, nextPageToken } = first; ; ) {
      const end = lines.findIndex((line) => !isWanted(line));
      const wanted = end === -1 ? lines : lines.slice(0, end);
      if (wanted.length > 0) yield wanted.map(write).join("");
      if (end !== -1 || nextPageToken === "") return;
      ({ lines, nextPageToken } = await furtherPage(nextPageToken));
    }
  }
  return Readable.from(text());
}
