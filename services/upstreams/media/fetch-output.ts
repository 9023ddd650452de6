import type { DriverContext } from "./context.ts";
import { type Download, download, downloadOnce, whileLate } from "./download.ts";
import { generateLimits } from "./limits.ts";
import type { GeneratedOutput, GenerationTask } from "./port.ts";
import { spool } from "./spool.ts";
import { musicOutput, storeImage, storeStream, videoOutput } from "./verify-output.ts";

/** Downloads one output of a task, verifies by its bytes that it is of the kind that was asked for, and stores it. */
export async function fetchOutput(
  context: DriverContext,
  task: GenerationTask,
  file: Pick<Download, "url" | "key" | "sha256">,
): Promise<GeneratedOutput> {
  const { request, upstream, signal } = task;
  const what = { ...file, upstream, signal };
  if (request.kind === "image") {
    const maxBytes = generateLimits.imageBytes;
    const image = { ...what, accept: "image/*", maxBytes };
    // A picture that is not whole shows so when it is decoded.
    return whileLate(context, signal, async () => {
      await using stack = new AsyncDisposableStack();
      const spooled = await downloadOnce(context, image, async (chunks) =>
        stack.use(await spool(context, task, chunks, maxBytes)),
      );
      return await storeImage(context, task, await spooled.load());
    });
  }
  const output = request.kind === "video" ? videoOutput(request.durationSeconds) : musicOutput;
  return download(context, { ...what, ...output, accept: output.mimeType }, (chunks) =>
    storeStream(task, output, chunks),
  );
}
