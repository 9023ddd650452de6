// Gets the outputs that an answer names or holds, and has `store-output.ts` verify and store them. The drivers only say where they are.

import { piecesOf } from "#kit/base/in-turns.ts";
import { isDataUri } from "#kit/images/index.ts";
import type { DriverContext } from "./context.ts";
import { type Download, download, downloadOnce, whileLate } from "./download.ts";
import type { FileAnswers } from "./file-answers.ts";
import { readInline } from "./inline-file.ts";
import { generateLimits } from "./limits.ts";
import type { LongText } from "./long-texts.ts";
import type { GeneratedOutput, GenerationTask } from "./port.ts";
import { spool } from "./spool.ts";
import { storeImage, storeStream, streamedOutput } from "./store-output.ts";

/** An output in an answer: by its URL, where a data URI is the file itself, or in base64. */
export type OutputFile =
  | ({ url: string | LongText } & Pick<Download, "key" | "sha256">)
  | { base64: string | LongText };

/**
 * Stores the outputs that an answer holds or names, in their order. Those that the answer holds come first. The answer stays in memory
 * until they are stored, and no task holds memory while it waits for an upstream. `stored` is called for each.
 */
export async function fetchOutputs(
  context: DriverContext,
  task: GenerationTask,
  answers: FileAnswers,
  files: readonly OutputFile[],
  stored: () => void = () => {},
): Promise<GeneratedOutput[]> {
  const outputs = new Map<OutputFile, GeneratedOutput>();
  const fetchAll = async (some: readonly OutputFile[]) => {
    for (const file of some) {
      outputs.set(file, await fetchOutput(context, task, file));
      stored();
    }
  };
  const inline = files.filter((file) => "inline" in sourceOf(file));
  if (inline.length > 0) await answers.hold();
  await fetchAll(inline);
  answers.release();
  await fetchAll(files.filter((file) => !inline.includes(file)));
  return files.flatMap((file) => outputs.get(file) ?? []);
}

/** Gets one output of a task, verifies by its bytes that it is of the requested kind, and stores it. */
export async function fetchOutput(
  context: DriverContext,
  task: GenerationTask,
  file: OutputFile,
): Promise<GeneratedOutput> {
  const { request, upstream, signal } = task;
  const source = sourceOf(file);
  if (request.kind === "image") {
    const maxBytes = generateLimits.imageBytes;
    if ("inline" in source) {
      return storeImage(context, task, await readInline(source.inline, maxBytes));
    }
    const image = { ...source.named, upstream, signal, accept: "image/*", maxBytes };
    // Decoding shows whether an image is complete.
    return whileLate(context, signal, async () => {
      await using stack = new AsyncDisposableStack();
      const spooled = await downloadOnce(context, image, async (chunks) =>
        stack.use(await spool(context, task, chunks, { maxBytes })),
      );
      using loaded = await spooled.load();
      return await storeImage(context, task, loaded.bytes);
    });
  }
  const output = streamedOutput(request);
  const { maxBytes, mimeType: accept } = output;
  if ("inline" in source) {
    return storeStream(task, output, piecesOf(await readInline(source.inline, maxBytes)));
  }
  return download(context, { ...source.named, upstream, signal, maxBytes, accept }, (chunks) =>
    storeStream(task, output, chunks),
  );
}

/** The text that is the file itself, or that leads to the file. */
function sourceOf(
  file: OutputFile,
): { inline: string | LongText } | { named: Pick<Download, "url" | "key" | "sha256"> } {
  if ("base64" in file) return { inline: file.base64 };
  const { url } = file;
  const isInline = typeof url !== "string" || isDataUri(url);
  return isInline ? { inline: url } : { named: { ...file, url } };
}
