import type { JsonObject, JsonValue } from "#kit/json.ts";
import type { Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { DriverContext } from "./context.ts";
import { type Download, download, downloadBytes, isWithin } from "./download.ts";
import { failed } from "./faults.ts";
import { generateLimits } from "./limits.ts";
import { takeImageRoom } from "./memory.ts";
import type { GeneratedOutput, GenerationRequest, GenerationTask } from "./port.ts";
import { musicOutput, storeImage, storeStream, videoOutput } from "./verify-output.ts";

/** What a finished job of another deployment shows. */
export interface FinishedJob {
  request: GenerationRequest;
  items: readonly JsonObject[];
  /** Where its files are, at the upstream's own address. */
  filesUrl: string;
}

/** Downloads, verifies and stores the outputs of a job. Rejects `failed` where there are too few. */
export async function generatedFrom(
  context: DriverContext,
  task: GenerationTask,
  { request, items, filesUrl }: FinishedJob,
): Promise<GeneratedOutput[]> {
  const count = request.kind === "image" ? request.count : 1;
  if (items.length < count) throw failed("the upstream made too few outputs");
  const outputs: GeneratedOutput[] = [];
  for (const item of items.slice(0, count)) {
    const { upstream, signal } = task;
    const url = fileUrl(upstream, item, filesUrl);
    outputs.push(await fetched(context, task, { upstream, url, sha256: digestOf(item), signal }));
  }
  return outputs;
}

async function fetched(
  context: DriverContext,
  task: GenerationTask,
  file: Pick<Download, "upstream" | "url" | "sha256" | "signal">,
): Promise<GeneratedOutput> {
  const { request } = task;
  if (request.kind === "image") {
    const maxBytes = generateLimits.imageBytes;
    const what = { ...file, accept: "image/*", maxBytes };
    using _room = await takeImageRoom(context.memory, task);
    return await storeImage(context, task, await downloadBytes(context, what));
  }
  const output = request.kind === "video" ? videoOutput(request.durationSeconds) : musicOutput;
  return download(context, { ...file, ...output, accept: output.mimeType }, (chunks) =>
    storeStream(task, output, chunks),
  );
}

/**
 * Where to fetch a file. A deployment names its private files by its public address, which need not be the one that we
 * reach it by; such a file is fetched where we reach it, for only there our key may go.
 */
export function fileUrl(upstream: Upstream, item: JsonObject, filesUrl: string): string {
  const { id, url: text } = item;
  const url = typeof text === "string" ? URL.parse(text, `${upstream.baseUrl}/`) : null;
  if (!url) throw failed("the upstream's answer names no file");
  if (isWithin(upstream, url) || typeof id !== "string") return url.href;
  const path = `/${encodeURIComponent(id)}`;
  const isPrivate = url.pathname.endsWith(privatePath(upstream, filesUrl) + path);
  return isPrivate ? filesUrl + path : url.href;
}

/** The part of a path that every address of a deployment has in common. */
function privatePath({ baseUrl }: Upstream, filesUrl: string): string {
  return filesUrl.slice(baseUrl.length);
}

function digestOf({ sha256 }: { [name: string]: JsonValue }): string | undefined {
  return typeof sha256 === "string" && /^[0-9a-f]{64}$/.test(sha256) ? sha256 : undefined;
}
