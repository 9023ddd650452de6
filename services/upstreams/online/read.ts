// Reads documents of upstreams for checks and probes, within bounds and each only once.

import type { JsonValue } from "#kit/base/json.ts";
import { UpstreamError } from "#kit/upstream/errors.ts";
import type { Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { type CallContext, callUpstream, isTooDeep, type UpstreamCall } from "../call.ts";
import { capabilitiesOf } from "../protocols.ts";

/** Bytes of a document: ComfyUI's list of all nodes has some MiB. */
const documentBytes = 64 * 1024 * 1024;
/** Milliseconds for one document. */
const documentMs = 30_000;

/** A document of an upstream, or the reason why there is none. */
export type Found = { value: JsonValue; fault?: never } | { value?: never; fault: string };

/** Reads documents of upstreams, each once. Never rejects. */
export type Read = (
  upstream: Upstream,
  url: string,
  more?: Pick<UpstreamCall, "key" | "headers">,
) => Promise<Found>;

/** Settings of a reader. */
export interface ReadOptions {
  /** Bytes of a document. Default: {@link documentBytes}. */
  maxBytes?: number;
  /** Ends all reads. */
  signal?: AbortSignal;
}

/** Makes a reader. */
export function createRead(context: CallContext, options: ReadOptions = {}): Read {
  const found = new Map<string, Promise<Found>>();
  return (upstream, url, more = {}) => {
    const name = `${upstream.name} ${url}`;
    const known = found.get(name) ?? readDocument(context, { upstream, url, ...more }, options);
    found.set(name, known);
    return known;
  };
}

async function readDocument(
  context: CallContext,
  call: Pick<UpstreamCall, "upstream" | "url" | "key" | "headers">,
  { maxBytes = documentBytes, signal }: ReadOptions,
): Promise<Found> {
  const late = AbortSignal.timeout(documentMs);
  try {
    const reply = await callUpstream(context, {
      ...call,
      key: call.key ?? capabilitiesOf(call.upstream.protocol)?.key,
      method: "GET",
      headers: { accept: "application/json", ...call.headers },
      timeoutMs: documentMs,
      signal: signal ? AbortSignal.any([signal, late]) : late,
    });
    if (reply.status >= 300) {
      reply.body.close();
      return { fault: `answers ${reply.status}` };
    }
    const bytes = await reply.body.whole(maxBytes);
    if (isTooDeep(bytes)) return { fault: "answers with JSON that is nested too deep" };
    return { value: JSON.parse(bytes.toString()) as JsonValue };
  } catch (error) {
    if (error instanceof SyntaxError) return { fault: "answers with what is no JSON" };
    if (!(error instanceof UpstreamError)) return { fault: "does not answer in time" };
    if (error.kind !== "misconfigured") return { fault: `cannot be read (${error.kind})` };
    return { fault: `cannot be read: ${missingKey(call.upstream)}` };
  }
}

function missingKey({ apiKeyEnv, apiKeyFile, apiKeyStored }: Upstream): string {
  if (apiKeyStored !== "") return `the stored key ${apiKeyStored} is not here`;
  return apiKeyEnv === ""
    ? `the file ${apiKeyFile} holds no key`
    : `the variable ${apiKeyEnv} is not set`;
}
