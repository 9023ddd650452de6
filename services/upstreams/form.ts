// Writes the forms in which files are sent to upstreams. Forms that callers send are read by the edge.

import { randomUUID } from "node:crypto";
import { joinInTurns } from "#kit/base/in-turns.ts";

/** A file that is sent in a form. */
export interface FormFile {
  bytes: Uint8Array;
  /** With an ending, which upstreams use. */
  fileName: string;
  mimeType: string;
}

/** A field of a form, text or a file. A name may come more than once. */
export type FormField = readonly [name: string, value: string | FormFile];

/**
 * A multipart form (RFC 7578, written as browsers do) with its header. A large one is made in several turns of the event loop. FormData
 * would copy each file twice, each time at once.
 */
export async function encodeForm(
  fields: readonly FormField[],
): Promise<{ headers: { "content-type": string }; body: Uint8Array<ArrayBuffer> }> {
  const boundary = `form-${randomUUID()}`;
  const pieces: Uint8Array[] = [];
  for (const [name, value] of fields) {
    const head = `--${boundary}\r\nContent-Disposition: form-data; name="${escaped(name)}"`;
    if (typeof value === "string") {
      const text = value.replace(/\r?\n|\r/g, "\r\n");
      pieces.push(Buffer.from(`${head}\r\n\r\n${text}\r\n`));
    } else {
      const { bytes, fileName, mimeType } = value;
      const of = `${head}; filename="${escaped(fileName)}"\r\nContent-Type: ${mimeType}\r\n\r\n`;
      pieces.push(Buffer.from(of), bytes, Buffer.from("\r\n"));
    }
  }
  pieces.push(Buffer.from(`--${boundary}--\r\n`));
  const headers = { "content-type": `multipart/form-data; boundary=${boundary}` };
  return { headers, body: await joinInTurns(pieces) };
}

function escaped(name: string): string {
  return name.replaceAll("\n", "%0A").replaceAll("\r", "%0D").replaceAll('"', "%22");
}
