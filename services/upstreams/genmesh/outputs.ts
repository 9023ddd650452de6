// Fetches the files of a job or of speech from another genmesh, at the address that the catalog names.

import type { JsonObject, JsonValue } from "#kit/base/json.ts";
import { parseUrl } from "#kit/base/url.ts";
import { isDataUri } from "#kit/images/index.ts";
import type { Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { DriverContext } from "../media/context.ts";
import { isWithin } from "../media/download.ts";
import { failed } from "../media/faults.ts";
import { fetchOutput } from "../media/fetch-output.ts";
import type { GeneratedOutput, GenerationRequest, GenerationTask } from "../media/port.ts";

/** A finished job of another deployment. */
export interface FinishedJob {
  request: GenerationRequest;
  items: readonly JsonObject[];
  /** URL of its files, at the upstream's own address. */
  filesUrl: string;
}

/**
 * Downloads, verifies and stores the outputs of a job. Where there are fewer images than requested, its own upstream refused the
 * others, and it charges only for these. Rejects with `failed` where there is none.
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
 * The URL of a file. A deployment names its private files by its public address, which may differ from the address that we use. Such a
 * file is fetched at the address that we use, because our key may be sent only there. A data URI is the file itself.
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

/** The part of a path that all addresses of a deployment share. */
function privatePath({ baseUrl }: Upstream, filesUrl: string): string {
  return filesUrl.slice(baseUrl.length);
}

function digestOf({ sha256 }: { [name: string]: JsonValue }): string | undefined {
  return typeof sha256 === "string" && /^[0-9a-f]{64}$/.test(sha256) ? sha256 : undefined;
}
