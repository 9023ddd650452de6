import type { JsonObject, JsonValue } from "#kit/base/json.ts";
import { parseUrl } from "#kit/base/url.ts";
import { isDataUri } from "#kit/images/index.ts";
import type { Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { DriverContext } from "../media/context.ts";
import { isWithin } from "../media/download.ts";
import { failed } from "../media/faults.ts";
import { fetchOutput } from "../media/fetch-output.ts";
import type { GeneratedOutput, GenerationRequest, GenerationTask } from "../media/port.ts";

/** What a finished job of another deployment shows. */
export interface FinishedJob {
  request: GenerationRequest;
  items: readonly JsonObject[];
  /** Where its files are, at the upstream's own address. */
  filesUrl: string;
}

/**
 * Downloads, verifies and stores the outputs of a job. Fewer pictures than were asked for are those that its own upstream did not
 * refuse, and what it charges for; rejects `failed` where there is none.
 */
export async function generatedFrom(
  context: DriverContext,
  task: GenerationTask,
  { request, items, filesUrl }: FinishedJob,
): Promise<GeneratedOutput[]> {
  const count = request.kind === "image" ? request.count : 1;
  if (items.length === 0) throw failed("the upstream made no outputs");
  const outputs: GeneratedOutput[] = [];
  for (const item of items.slice(0, count)) {
    const url = fileUrl(task.upstream, item, filesUrl);
    outputs.push(await fetchOutput(context, task, { url, sha256: digestOf(item) }));
  }
  return outputs;
}

/**
 * Where to fetch a file. A deployment names its private files by its public address, which need not be the one that we
 * reach it by; such a file is fetched where we reach it, for only there our key may go. A data URI is the file itself.
 */
export function fileUrl(upstream: Upstream, item: JsonObject, filesUrl: string): string {
  const { id, url: text } = item;
  if (typeof text === "string" && isDataUri(text)) return text;
  const url = typeof text === "string" ? parseUrl(text, `${upstream.baseUrl}/`) : null;
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
