import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import sharp from "sharp";
import { startOneProcess } from "./genmesh.ts";
import { runLoad } from "./load.ts";
import { loadCore, residentBytesOf, startProgram } from "./processes.ts";
import { models, type RequestKind } from "./requests.ts";
import type { Target } from "./target.ts";
import { show, worstImages } from "./worst-images.ts";

/** Resident memory of one process with its decoders, in MiB, step by step. */
export interface MemoryFigures {
  idle: number;
  /** After answers, prompts, jobs, downloads and images, when there are no further requests. */
  afterLoad: number;
  /** The most while images of 50 megapixels are accepted. */
  largeImages: number;
  /** Some seconds later, when decoders without work have ended. */
  afterImages: number;
  /** Each round of the worst images. The second should add nothing. */
  rounds: readonly WorstRound[];
}

/** A round in which every one of the worst images is shown. */
export interface WorstRound {
  /** The most while they are shown. */
  most: number;
  /** At its end, when there are no further requests. */
  after: number;
  /** When decoders and threads have ended, and V8 has collected. */
  atRest: number;
}

/** The requests, one kind after the other. */
const load: readonly { kind: RequestKind; maxRequests: number; inFlight: number }[] = [
  { kind: "json", maxRequests: 8_000, inFlight: 32 },
  { kind: "stream", maxRequests: 1_000, inFlight: 32 },
  { kind: "prompt", maxRequests: 800, inFlight: 32 },
  { kind: "range", maxRequests: 40, inFlight: 4 },
  { kind: "submit", maxRequests: 600, inFlight: 32 },
];
/** Most seconds of a kind. */
const mostSeconds = 60;
/** Images that the process itself renders, and images of 50 megapixels that are sent at once. */
const [pictures, largeImages] = [24, 8];
/** Milliseconds until memory of the load is freed. Decoders and threads end after 15 s without work. */
const settleMs = 18_000;
/** Rounds of the worst images. Memory that the second one adds would grow with each further one. */
const worstRounds = 2;
/**
 * Milliseconds until the process is at rest. Its decoders and threads end after 15 s, and it collects for the last time up to 32 s later.
 * Where that finds it at work, it collects 5 s later.
 */
const restMs = 45_000;
/** Milliseconds between two looks while images are decoded. Memory grows by about 1 MiB a millisecond. */
const lookMs = 10;
const mib = 1_024 * 1_024;

/** Measures the memory of one process under load and with large images. */
export async function weigh(signal: AbortSignal): Promise<MemoryFigures> {
  await using stack = new AsyncDisposableStack();
  const upstream = stack.use(startProgram("./upstream.ts", { core: loadCore }));
  const upstreamPort = Number(await upstream.firstLine);
  const target = stack.use(await startOneProcess({ upstreamPort, profileFolder: undefined }));
  const [pid = 0] = target.pids;
  await delay(settleMs, undefined, { signal });
  const idle = weightOf(pid);
  for (const { kind, ...bounds } of load) {
    signal.throwIfAborted();
    const requests = target.requests[kind] ?? [];
    await runLoad({ port: target.port, requests, seconds: mostSeconds, ...bounds });
  }
  await draw(target, signal);
  await delay(settleMs, undefined, { signal });
  const afterLoad = weightOf(pid);
  const most = await mostWhile(pid, () => sendLargeImages(target, signal));
  await delay(settleMs, undefined, { signal });
  const afterImages = weightOf(pid);
  const rounds = await showWorst(target, signal);
  return { idle, afterLoad, largeImages: most, afterImages, rounds };
}

async function showWorst(target: Target, signal: AbortSignal): Promise<WorstRound[]> {
  const [pid = 0] = target.pids;
  const images = await worstImages();
  const rounds: WorstRound[] = [];
  const showAll = async () => {
    for (const image of images) {
      signal.throwIfAborted();
      await show(target, image);
    }
  };
  while (rounds.length < worstRounds) {
    const most = await mostWhile(pid, showAll);
    const after = weightOf(pid);
    await delay(restMs, undefined, { signal });
    rounds.push({ most, after, atRest: weightOf(pid) });
  }
  return rounds;
}

/** Images of the builtin generator, to their end. */
async function draw(target: Target, signal: AbortSignal): Promise<void> {
  const headers = { "content-type": "application/json" };
  const body = (i: number) => JSON.stringify({ model: models.drawn, prompt: `a boat, ${i}` });
  const make = async (_: unknown, i: number) => {
    const job = await ask(target, i, "/images/generations", { headers, body: body(i) });
    const path = new URL(job.statusUrl).pathname.slice("/v1".length);
    for (let isOver = false; !isOver; ) {
      await delay(200, undefined, { signal });
      isOver = (await ask(target, i, path)).terminal === true;
    }
  };
  await Promise.all(Array.from({ length: pictures }, make));
}

/** Progressive JPEGs of 50 megapixels with all colours of each pixel. They need the most of a decoder. */
async function sendLargeImages(target: Target, signal: AbortSignal): Promise<void> {
  const create = { width: 8_000, height: 6_250, channels: 3 as const, background: "#456" };
  const options = { progressive: true, chromaSubsampling: "4:4:4" };
  const image = new Uint8Array(await sharp({ create }).jpeg(options).toBuffer());
  const send = async (_: unknown, i: number) => {
    signal.throwIfAborted();
    const body = new FormData();
    body.set("purpose", "vision");
    body.set("file", new Blob([image], { type: "image/jpeg" }), "large.jpg");
    await ask(target, i, "/files", { body });
  };
  await Promise.all(Array.from({ length: largeImages }, send));
}

async function ask(
  { port, requests }: Target,
  i: number,
  path: string,
  post?: { headers?: Record<string, string>; body: string | FormData },
) {
  const all = requests.json ?? [];
  const authorization = /authorization: (.*)\r\n/.exec(`${all[i % all.length]}`)?.[1] ?? "";
  const answer = await fetch(`http://127.0.0.1:${port}/v1${path}`, {
    method: post ? "POST" : "GET",
    headers: { authorization, ...post?.headers },
    ...(post ? { body: post.body } : {}),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${path} was answered ${answer.status}: ${text}`);
  return JSON.parse(text);
}

async function mostWhile(pid: number, work: () => Promise<void>): Promise<number> {
  let most = 0;
  let isOver = false;
  const ended = work().finally(() => {
    isOver = true;
  });
  while (!isOver) {
    most = Math.max(most, weightOf(pid));
    await Promise.race([delay(lookMs), ended]);
  }
  await ended;
  return most;
}

/** MiB of a process and all its children, with pages that they share counted in each. A child that has ended meanwhile has none. */
function weightOf(pid: number): number {
  return familyOf(pid).reduce((sum, one) => sum + (residentBytesOf(one) || 0), 0) / mib;
}

function familyOf(pid: number): number[] {
  try {
    const threads = readdirSync(`/proc/${pid}/task`);
    const children = threads.flatMap((thread) =>
      (readFileSync(`/proc/${pid}/task/${thread}/children`, "utf8").match(/\d+/g) ?? []).map(
        Number,
      ),
    );
    return [pid, ...children.flatMap(familyOf)];
  } catch (error) {
    // The process has ended since it was listed.
    if (["ENOENT", "ESRCH"].includes((error as NodeJS.ErrnoException).code ?? "")) return [];
    throw error;
  }
}
