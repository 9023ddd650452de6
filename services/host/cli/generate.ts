import { randomUUID } from "node:crypto";
import { access, constants } from "node:fs/promises";
import { dirname, extname } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { type Command, Option } from "commander";
import { wholeNumber } from "./arguments.ts";
import { withExamples } from "./help.ts";
import { dollars, printJson } from "./output.ts";
import type { Cli } from "./program.ts";
import { type ApiDocument, createPublicApi, type PublicApi } from "./public-api.ts";

/** Where the one-process run serves the public API. */
const defaultBaseUrl = "http://127.0.0.1:8080/v1";
/** Milliseconds between two looks at a job: the API asks for 3 to 5 s of a program, a person watches a bar. */
const lookEveryMs = 1_000;
/** Characters of the progress bar. */
const barWidth = 30;

interface Options {
  output: string;
  model: string;
  baseUrl?: string;
  apiKey?: string;
  size?: string;
  seconds?: number;
  resolution?: string;
  n?: number;
  voice: string;
  language?: string;
  lyrics?: string;
}

const kinds = ["image", "video", "music", "speech"] as const;
type Kind = (typeof kinds)[number];

/** `genmesh generate …`: uses the public API as any client does. */
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
  const add = (kind: Kind, words: string, model: string, example: string) =>
    withExamples(
      generate
        .command(`${kind} <prompt>`)
        .description(words)
        .requiredOption("-o, --output <file>", "where it goes; several images are numbered")
        .option("--model <model>", "model of the catalog", model)
        .option("--api-key <key>", "default GENMESH_API_KEY")
        .option("--base-url <url>", `default GENMESH_BASE_URL, or ${defaultBaseUrl}`),
      example,
    ).action((prompt: string, options: Options) => run(cli, kind, prompt, options));
  add("image", "a picture (PNG)", "image-1", 'generate image "a fox in the snow" -o fox.png')
    .option("--size <size>", "such as 1024x1024")
    .option("-n, --n <count>", "1 to 10 pictures", wholeNumber(1, 10));
  add("video", "a film (MP4)", "svc-video-1-5", 'generate video "waves" --seconds 6 -o waves.mp4')
    .option("--seconds <seconds>", "a length that the model offers", wholeNumber(1, 60))
    .option("--resolution <resolution>", "such as 480p");
  add(
    "music",
    "a song (MP3); the prompt is its title",
    "music-1",
    'generate music "Morning" -o song.mp3',
  ).option("--lyrics <words>", "sung; none: instrumental");
  add("speech", "a spoken text (MP3)", "speech-1", 'generate speech "Good morning." -o hello.mp3')
    .addOption(new Option("--voice <voice>", "a voice of the model").default("alloy"))
    .option("--language <language>", "such as en");
}

async function run(cli: Cli, kind: Kind, prompt: string, options: Options): Promise<void> {
  const baseUrl = (options.baseUrl ?? cli.config.baseUrl ?? defaultBaseUrl).replace(/\/+$/, "");
  const api = createPublicApi(baseUrl, options.apiKey ?? cli.config.apiKey);
  // Told before anything is charged.
  await access(dirname(options.output), constants.W_OK).catch((error: Error) => {
    throw new Error(`${options.output} cannot be written: ${error.message}`);
  });
  // The key makes a repeat after a lost answer safe: the API then gives the first job.
  const accepted = await api.post(pathOf(kind), bodyOf(kind, prompt, options), {
    "idempotency-key": randomUUID(),
  });
  const ended = kind === "speech" ? accepted : await follow(cli, api, accepted);
  if (ended.error)
    throw new Error(`${ended.error.message} (${ended.error.code}); nothing was charged`);
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

/** Shows a bar on standard error until the job is over. */
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
