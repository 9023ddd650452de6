import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { maxFileBytes } from "./limits.ts";

/** What was found at a path at one moment: its text, or why there is none. */
export type FileRead = { text: string; fault?: never } | { text?: never; fault: string };

/** Reads a catalog file through whatever links lead to it. Never rejects. */
export async function readCatalogFile(path: string): Promise<FileRead> {
  try {
    // Without blocking: opening a pipe would otherwise wait for its writer.
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    if (!(await file.stat()).isFile()) return { fault: "the path does not lead to a regular file" };
    const chunks: Buffer[] = [];
    // `end` is inclusive: one byte more than may be there.
    for await (const chunk of file.createReadStream({ end: maxFileBytes, autoClose: false })) {
      chunks.push(chunk);
    }
    const bytes = Buffer.concat(chunks);
    if (bytes.length > maxFileBytes)
      return { fault: `the file has more than ${maxFileBytes} bytes` };
    return { text: new TextDecoder("utf-8", { fatal: true }).decode(bytes) };
  } catch (error) {
    if (error instanceof TypeError) return { fault: "the file is not UTF-8" };
    const code = (error as NodeJS.ErrnoException).code;
    return { fault: `the file cannot be read (${code ?? "unknown error"})` };
  }
}
