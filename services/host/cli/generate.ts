// Adds `genmesh generate`, which makes an image, video, music or speech by the public API, with a key, like any client. Other
// commands call services as an operator.

import { randomUUID } from "node:crypto";
import { createWriteStream } from "node:fs";
import { access, constants } from "node:fs/promises";
import { dirname, extname } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setTimeout as delay } from "node:timers/promises";
import type { Command } from "commander";
import { ConfigError } from "../env.ts";
import { again, againForMs } from "./again.ts";
import { wholeNumber, withExamples } from "./arguments.ts";
import { dollars, printJson } from "./output.ts";
import type { Cli } from "./program.ts";

/** The default address of the public API in the one-process run. */
export const defaultBaseUrl = "http://127.0.0.1:8080/v1";
/** Milliseconds between two looks at a job. The API asks programs for 3 to 5 s, but here a person watches a progress bar. */
const lookEveryMs = 1_000;
/** Characters of the progress bar. */
const barWidth = 30;

interface Options {
  output: string;
  model?: string;
  baseUrl?: string;
  apiKey?: string;
  size?: string;
  seconds?: number;
  resolution?: string;
  n?: number;
  voice?: string | undefined;
  language?: string;
  lyrics?: string;
}

const kinds = ["image", "video", "music", "speech"] as const;
type Kind = (typeof kinds)[number];

/** `genmesh generate …`. It uses the public API like any client. */
export function generateCommands(program: Command, cli: Cli): void {
  const generate = withExamples(
    program
      .command("generate")
      .description("generate a file with an API key (GENMESH_API_KEY), and say what it cost"),
    'generate image "a fox in the snow" -o fox.png',
    'generate video "waves at a pier" --seconds 6 --resolution 480p -o pier.mp4',
    'generate music "Harbour lights" --lyrics "The lights go out" -o song.mp3',
    'generate speech "Good morning." -o hello.mp3',
  );
  const add = (kind: Kind, words: string, example: string) =>
    withExamples(
      generate
        .command(`${kind} <prompt>`)
        .description(words)
        .requiredOption("-o, --output <file>", "where it goes; several images are numbered")
        .option(
          "--model <model>",
          "model of the catalog; default: the catalog's default of the kind",
        )
        .option("--api-key <key>", "default GENMESH_API_KEY")
        .option("--base-url <url>", `default GENMESH_BASE_URL, or ${defaultBaseUrl}`),
      example,
    ).action((prompt: string, options: Options) => run(cli, kind, prompt, options));
  add("image", "a picture (PNG)", 'generate image "a fox in the snow" -o fox.png')
    .option("--size <size>", "such as 1024x1024")
    .option("-n, --n <count>", "1 to 10 pictures", wholeNumber(1, 10));
  add("video", "a film (MP4)", 'generate video "waves" --seconds 6 -o waves.mp4')
    .option("--seconds <seconds>", "a length that the model offers", wholeNumber(1, 60))
    .option("--resolution <resolution>", "such as 480p");
  add(
    "music",
    "a song (MP3); the prompt is its title",
    'generate music "Morning" -o song.mp3',
  ).option("--lyrics <words>", "sung; none: instrumental");
  add("speech", "a spoken text (MP3)", 'generate speech "Good morning." -o hello.mp3')
    .option("--voice <voice>", "a voice of the model; default: its first")
    .option("--language <language>", "such as en");
}

async function run(cli: Cli, kind: Kind, prompt: string, options: Options): Promise<void> {
  const baseUrl = (options.baseUrl ?? cli.config.baseUrl ?? defaultBaseUrl).replace(/\/+$/, "");
  const api = createPublicApi(baseUrl, options.apiKey ?? cli.config.apiKey, () =>
    cli.json
      ? undefined
      : cli.err(`genmesh: ${baseUrl} is away; trying for ${againForMs / 1_000} s\n`),
  );
  // Checked before anything is charged.
  await access(dirname(options.output), constants.W_OK).catch((error: Error) => {
    throw new Error(`${options.output} cannot be written: ${error.message}`);
  });
  // The key makes a repeat after a lost answer safe, because the API then answers with the first job.
  const body = bodyOf(kind, prompt, await withDefaults(api, baseUrl, kind, options));
  const accepted = await api.post(pathOf(kind), body, { "idempotency-key": randomUUID() });
  const ended = kind === "speech" ? accepted : await follow(cli, api, accepted);
  if (ended.error)
    throw new Error(`${ended.error.message} (${ended.error.code}); charged: ${costText(ended)}`);
  const urls = outputsOf(ended);
  const files: string[] = [];
  for (const [index, url] of urls.entries()) {
    const file = urls.length === 1 ? options.output : numbered(options.output, index + 1);
    await api.download(url, file);
    files.push(file);
  }
  if (cli.json) return printJson(cli, { id: ended.id, files, ...costOf(ended) });
  cli.out(`${files.join(", ")}: ${costText(ended)}\n`);
}

/** The model and the voice that the options name. By default the first model of the kind that the key may use, and its first voice. */
async function withDefaults(
  api: PublicApi,
  baseUrl: string,
  kind: Kind,
  options: Options,
): Promise<Options> {
  if (options.model && (options.voice || kind !== "speech")) return options;
  const { data = [] } = await api.get(`${baseUrl}/models`).catch((error: Error) => {
    if (!error.message.includes("permission_denied")) throw error;
    const named = kind === "speech" ? "--model and --voice" : "--model";
    throw new Error(`a key without the scope models needs ${named}: ${error.message}`);
  });
  const models = data.filter((model) => model.kind === kind);
  const usual = models.find((model) => model.default) ?? models[0];
  if (!usual) throw new Error(`the key may use no ${kind} model of the catalog`);
  const { id, voices } = models.find((model) => model.id === options.model) ?? usual;
  return { ...options, model: options.model ?? id, voice: options.voice ?? voices?.[0] };
}

/** Shows a progress bar on standard error until the job has ended. */
async function follow(cli: Cli, api: PublicApi, accepted: ApiDocument): Promise<ApiDocument> {
  let job = accepted;
  while (!job.terminal) {
    if (!cli.json) cli.err(`\r${bar(job)}`);
    await delay(lookEveryMs);
    job = await api.get(accepted.statusUrl ?? "");
  }
  if (!cli.json) cli.err(`\r${bar(job)}\n`);
  return job;
}

function bar(job: ApiDocument): string {
  const done = Math.round(((job.progress ?? 0) / 100) * barWidth);
  const percent = String(job.progress ?? 0).padStart(3);
  return `[${"#".repeat(done)}${".".repeat(barWidth - done)}] ${percent} % ${(job.status ?? "").padEnd(9)}`;
}

function pathOf(kind: Kind): string {
  return (
    { image: "/images", video: "/videos", music: "/music", speech: "/speech" }[kind] +
    "/generations"
  );
}

function bodyOf(kind: Kind, prompt: string, options: Options): object {
  const { model, size, n, seconds, resolution, voice, language, lyrics } = options;
  switch (kind) {
    case "image":
      return { model, prompt, size, n };
    case "video":
      return { model, prompt, seconds, resolution };
    case "music":
      return { model, title: prompt, mode: lyrics ? "lyrics" : "instrumental", lyrics };
    case "speech":
      return { model, input: prompt, voice, language };
  }
}

function outputsOf(document: ApiDocument): string[] {
  const items = document.images ?? document.videos ?? document.clips ?? [document.audio];
  return items.flatMap((item) => (item ? [item.url] : []));
}

function costOf(document: ApiDocument): object {
  return document.usage
    ? { costUsdMicros: document.usage.costUsdMicros }
    : { creditsCharged: document.creditsCharged };
}

function costText({ usage, creditsCharged }: ApiDocument): string {
  return usage
    ? `${usage.characters} characters, ${dollars(BigInt(usage.costUsdMicros))}`
    : `${creditsCharged} credits`;
}

function numbered(file: string, index: number): string {
  const end = extname(file);
  return `${file.slice(0, file.length - end.length)}-${index}${end}`;
}

/** The calls of the public API that the command makes. */
export interface PublicApi {
  post(path: string, body: object, headers?: Record<string, string>): Promise<ApiDocument>;
  get(url: string): Promise<ApiDocument>;
  /** Writes a private file to disk. Answers its size in bytes. */
  download(url: string, file: string): Promise<number>;
}

/** A job, a speech, the list of models or an error, in the form of the public API. */
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
  data?: { id: string; kind: string; default: boolean; voices?: string[] }[];
  usage?: { characters: number; costUsdMicros: number };
  error?: { message: string; code?: string } | null;
}

/** Milliseconds for one call. A download may take longer. */
const callTimeoutMs = 120_000;

/** The API is away, and may be back in a moment. Every POST brings an idempotency key, so every call may be repeated. */
class AwayError extends Error {}

/**
 * Calls `baseUrl` (ending in `/v1`) with `apiKey`. Errors have the API's own text. Where the API is away, calls are repeated for some
 * seconds, after one call of `onRepeat`.
 */
export function createPublicApi(
  baseUrl: string,
  apiKey: string | undefined,
  onRepeat: () => void,
): PublicApi {
  if (!apiKey) throw new ConfigError("no API key: set GENMESH_API_KEY, or give --api-key");
  const authorization = { authorization: `Bearer ${apiKey}` };
  const once = async (url: string, init: RequestInit): Promise<Response> => {
    const response = await fetch(url, init).catch((error: Error) => {
      // A failed connection has a code, and a timeout has none. A text that is no address has one of Node's own codes.
      const cause = error.cause as NodeJS.ErrnoException | undefined;
      const isConnection = cause?.code !== undefined && !cause.code.startsWith("ERR_");
      const Kind = isConnection ? AwayError : Error;
      throw new Kind(
        `${baseUrl} cannot be reached: ${cause?.message ?? error.message}: is it running, and is --base-url (or GENMESH_BASE_URL) its public port, ending in /v1?`,
      );
    });
    if (response.ok) return response;
    const { error } = (await response.json().catch(() => ({}))) as ApiDocument;
    const Kind = response.status === 503 ? AwayError : Error;
    throw new Kind(
      error ? `${error.message} (${error.code})` : `the server answered ${response.status}`,
    );
  };
  const helps = (error: unknown) => error instanceof AwayError;
  const call = (url: string, init: RequestInit) =>
    again(() => once(url, init), { helps, onRepeat });
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
