import { createWriteStream } from "node:fs";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { ConfigError } from "../env.ts";

/** The public API as the command uses it. */
export interface PublicApi {
  post(path: string, body: object, headers?: Record<string, string>): Promise<ApiDocument>;
  get(url: string): Promise<ApiDocument>;
  /** Writes a private file to disk; answers its size in bytes. */
  download(url: string, file: string): Promise<number>;
}

/** A job, a speech or an error, as the API documents them. */
export interface ApiDocument {
  id?: string;
  status?: string;
  statusUrl?: string;
  terminal?: boolean;
  progress?: number;
  creditsReserved?: number;
  creditsCharged?: number;
  images?: { url: string }[];
  videos?: { url: string }[];
  clips?: { url: string }[];
  audio?: { url: string };
  usage?: { characters: number; costUsdMicros: number };
  error?: { message: string; code?: string } | null;
}

/** Milliseconds for one call; a download may take longer. */
const callTimeoutMs = 120_000;

/** Calls `baseUrl` (ending in `/v1`) with `apiKey`. Faults become errors with the API's own text. */
export function createPublicApi(baseUrl: string, apiKey: string | undefined): PublicApi {
  if (!apiKey) throw new ConfigError("no API key: set GENMESH_API_KEY, or give --api-key");
  const authorization = { authorization: `Bearer ${apiKey}` };
  const call = async (url: string, init: RequestInit): Promise<Response> => {
    const response = await fetch(url, init).catch((error: Error) => {
      throw new Error(
        `${baseUrl} cannot be reached: ${(error.cause as Error)?.message ?? error.message}: is it running, and is --base-url (or GENMESH_BASE_URL) its public port, ending in /v1?`,
      );
    });
    if (response.ok) return response;
    const { error } = (await response.json().catch(() => ({}))) as ApiDocument;
    throw new Error(
      error ? `${error.message} (${error.code})` : `the server answered ${response.status}`,
    );
  };
  const signal = () => AbortSignal.timeout(callTimeoutMs);
  return {
    async post(path, body, headers = {}) {
      const response = await call(`${baseUrl}${path}`, {
        method: "POST",
        headers: { ...authorization, "content-type": "application/json", ...headers },
        body: JSON.stringify(body),
        signal: signal(),
      });
      return (await response.json()) as ApiDocument;
    },
    async get(url) {
      const response = await call(url, { headers: authorization, signal: signal() });
      return (await response.json()) as ApiDocument;
    },
    async download(url, file) {
      const { body } = await call(url, { headers: authorization });
      if (!body) throw new Error("the server sent an empty file");
      const out = createWriteStream(file);
      await pipeline(Readable.fromWeb(body as never), out);
      return out.bytesWritten;
    },
  };
}
