// Uploads reference images to fal's storage, before a request names them.

import type { Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { uploadedUrl } from "../by-template/references.ts";
import type { DriverContext } from "../media/context.ts";
import { exchangeJson, jsonBody } from "../media/exchange.ts";
import { generateLimits, generateTimes } from "../media/limits.ts";
import type { LoadedReference } from "../media/load-references.ts";

/** The origins of fal's queue and of its storage. A test server for both has one origin. */
export const queueOrigin = "https://queue.fal.run";
const storageOrigin = "https://rest.fal.ai";

/**
 * Puts a reference into fal's storage and resolves with its URL. The storage names a place, and the bytes are put there without a key.
 * The place comes from an answer. So it is reached like a caller's URL: at public addresses only.
 */
export async function uploadToFal(
  context: DriverContext,
  { upstream, signal }: { upstream: Upstream; signal: AbortSignal },
  { mimeType, fileName, bytes }: LoadedReference,
): Promise<string> {
  const { origin } = new URL(upstream.baseUrl);
  const storage = origin === queueOrigin ? storageOrigin : origin;
  const url = `${storage}/storage/upload/initiate?storage_type=fal-cdn-v3`;
  const call = { upstream, method: "POST", url, timeoutMs: generateTimes.lookMs, signal } as const;
  const asked = jsonBody({ content_type: mimeType, file_name: fileName });
  const { body } = await exchangeJson(context, { ...call, ...asked }, generateLimits.answerBytes);
  const put = { bytes, contentType: mimeType };
  const timeoutMs = generateTimes.outsideMs;
  await context.fetcher.putBytes(uploadedUrl(body.upload_url), put, { timeoutMs, signal });
  return uploadedUrl(body.file_url);
}
