import { randomUUID } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { systemClock } from "#kit/time/clock.ts";
import { createBuiltinRenderer } from "../../../services/builtin/index.ts";
import type { Behaviour } from "../scripted-behaviours.ts";
import type { MediaOutputs } from "../scripted-media-upstream.ts";
import { type ComfyOptions, startComfy } from "./comfyui.ts";
import { startDeclaredService } from "./declared.ts";
import { type DeclaredName, declaredFacts } from "./declared-facts.ts";
import { replyText } from "./double.ts";
import { elevenLabsAnswers, startElevenLabs } from "./elevenlabs.ts";
import { falAnswers, falFailures, startFal } from "./fal.ts";
import { replicateAnswers, replicateErrors, startReplicate } from "./replicate.ts";

/** A double that a person uses without a test, beside a running genmesh. */
export interface ByHand extends AsyncDisposable {
  /** The `baseUrl` for a catalog. */
  baseUrl: string;
  /** The double's key. Undefined where it needs none. */
  key: string | undefined;
  /** The actions by their words. By default an action concerns the next request that begins a generation. */
  words: Readonly<Record<string, () => unknown>>;
}

type Starter = (port: number, made: MediaOutputs) => Promise<ByHand>;

/** Milliseconds of a step of a graph. */
const comfyStepMs = 250;
/** ComfyUI's error for a model file that does not exist. */
const notInList = {
  errors: [{ type: "value_not_in_list", message: "Value not in list", details: "ckpt_name" }],
  ...{ dependent_outputs: ["9"], class_type: "CheckpointLoaderSimple" },
};
/** A store's answer for a file that does not exist yet. */
const absent = replyText(404, "Not Found");
/** A graph of which one output is dropped, with only this answer. */
const partlyValid = { prompt_id: randomUUID(), number: 1, node_errors: { 4: notInList } };
/** A graph of which all outputs are dropped. */
const invalidGraph = {
  error: { type: "prompt_outputs_failed_validation", message: "Prompt outputs failed validation" },
  node_errors: { 4: notInList },
};

/** A ComfyUI of a year. {@link startComfy} describes the years. */
function comfyOf(vintage: NonNullable<ComfyOptions["vintage"]>): Starter {
  return async (port, made) => {
    const comfy = await startComfy({ port, vintage });
    Object.assign(comfy.outputs, made);
    // Slow enough for a person to see a percentage.
    comfy.usual.pace = "advance";
    let isHeld = false;
    const steps = setInterval(() => isHeld || comfy.advance(), comfyStepMs);
    return {
      ...{ baseUrl: comfy.origin, key: undefined },
      words: {
        failed: () => comfy.plan({ failure: { message: "out of memory", type: "OutOfMemory" } }),
        partial: () => comfy.next("submit", { kind: "json", body: partlyValid }),
        invalid: () => comfy.next("submit", { kind: "json", status: 400, body: invalidGraph }),
        down: () => comfy.next("submit", { kind: "status", status: 503 }),
        lost: () => comfy.next("submit", { kind: "lost" }),
        cutFile: () => comfy.next("view", { kind: "file", cutAfter: 40 }),
        lateFile: () => comfy.next("view", absent),
        held: () => (isHeld = true),
        finish: () => (isHeld = false),
        // At once. The server loses its queue and its history.
        restart: () => comfy.restart(),
        dropSockets: () => comfy.dropSockets(),
      },
      async [Symbol.asyncDispose]() {
        clearInterval(steps);
        await comfy[Symbol.asyncDispose]();
      },
    };
  };
}

/** A service whose HTTP a catalog of deploy/catalogs declares. */
function declaredOf(name: DeclaredName): Starter {
  return async (port, outputs) => {
    const service = await startDeclaredService(name, { port, outputs, isOneHost: true });
    return {
      ...{ baseUrl: service.baseUrl, key: service.key },
      words: {
        refused: () => service.plan({ end: "refused" }),
        failed: () => service.plan({ end: "failed" }),
        ...(service.facts.expires ? { expired: () => service.plan({ end: "expired" }) } : {}),
        ...each(service.facts.answers, (answer) =>
          service.server.next("create", answer as Behaviour),
        ),
        lost: () => service.server.next("create", { kind: "lost" }),
        cutFile: () => service.files.next("file", { kind: "file", cutAfter: 40 }),
        lateFile: () => service.files.next("file", absent),
        endedLink: () => service.plan({ deadLinks: 1 }),
        // Does not end before `finish`.
        held: () => service.plan({ pace: "held" }),
        finish: () => service.finish(),
      },
      [Symbol.asyncDispose]: service[Symbol.asyncDispose],
    };
  };
}

/** All of them by their names. */
const declared = Object.fromEntries(
  (Object.keys(declaredFacts) as DeclaredName[]).map((name) => [name, declaredOf(name)]),
) as Record<DeclaredName, Starter>;

export const doublesByHand = {
  ...declared,
  async fal(port, made) {
    const fal = await startFal({ port });
    Object.assign(fal.outputs, made);
    const { noFile: _, ...failures } = falFailures;
    const { tooEarly, ...answers } = falAnswers;
    return {
      ...{ baseUrl: fal.origin, key: fal.key },
      words: {
        ...each(failures, (failure) => fal.plan({ failure })),
        ...each(answers, (answer) => fal.next("submit", answer)),
        tooEarly: () => fal.next("result", tooEarly),
        lost: () => fal.next("submit", { kind: "lost" }),
        cutFile: () => fal.files.next("file", { kind: "file", cutAfter: 40 }),
        lateFile: () => fal.files.next("file", absent),
        queued: () => fal.plan({ positions: [2, 1, 0] }),
        // Does not end before `finish`.
        held: () => fal.plan({ pace: "advance" }),
        heldDeaf: () => fal.plan({ pace: "advance", positions: [], cancel: "ignored" }),
        finish: () => fal.finish(),
        // From now on.
        lock: () => fal.lock(),
        unlock: () => fal.lock(false),
      },
      [Symbol.asyncDispose]: fal[Symbol.asyncDispose],
    };
  },
  async replicate(port, made) {
    const replicate = await startReplicate({ port });
    Object.assign(replicate.outputs, made);
    const { noFile: _, ...errors } = replicateErrors;
    return {
      ...{ baseUrl: replicate.baseUrl, key: replicate.key },
      words: {
        ...each(errors, (error) => replicate.plan({ end: "failed", error })),
        ...each(replicateAnswers, (answer) => replicate.next("submit", answer)),
        canceled: () => replicate.plan({ end: "canceled" }),
        aborted: () => replicate.plan({ end: "aborted" }),
        atOnce: () => replicate.plan({ starting: 0, processing: 0 }),
        oneUrl: () => replicate.plan({ output: ([url]) => url }),
        list: () => replicate.plan({ output: (urls) => urls }),
        lost: () => replicate.next("submit", { kind: "lost" }),
        cutFile: () => replicate.files.next("file", { kind: "file", cutAfter: 40 }),
        lateFile: () => replicate.files.next("file", absent),
        held: () => replicate.plan({ pace: "advance" }),
        finish: () => replicate.finish(),
        // At once, for all predictions so far.
        removeData: () => replicate.predictions.map(({ id }) => replicate.removeData(id)),
        passDeadline: () => replicate.predictions.map(({ id }) => replicate.passDeadline(id)),
      },
      [Symbol.asyncDispose]: replicate[Symbol.asyncDispose],
    };
  },
  comfyui: comfyOf("2026"),
  "comfyui-2025": comfyOf("2025"),
  "comfyui-2024": comfyOf("2024"),
  async elevenlabs(port, made) {
    const double = await startElevenLabs({ port });
    double.sound = made.sound;
    // The voices of the shipped catalog.
    for (const id of ["JBFqnCBsd6RMkjVDRZzb", "EXAVITQu4vr4xnSDxMaL"]) double.voices.add(id);
    return {
      ...{ baseUrl: `${double.origin}/v1`, key: double.key },
      words: {
        ...each(elevenLabsAnswers, (answer) => double.next("speak", answer)),
        lost: () => double.next("speak", { kind: "lost" }),
        cutFile: () => double.next("speak", { kind: "file", cutAfter: 40 }),
      },
      [Symbol.asyncDispose]: double[Symbol.asyncDispose],
    };
  },
} satisfies Record<string, Starter>;

function each<T extends object | string | Behaviour>(
  table: Readonly<Record<string, T>>,
  act: (value: T) => void,
): Record<string, () => void> {
  return Object.fromEntries(Object.entries(table).map(([name, value]) => [name, () => act(value)]));
}

/** An image, a video and a piece of music for a person to see and hear. */
async function makeOutputs(): Promise<MediaOutputs> {
  const folder = await mkdtemp(join(tmpdir(), "genmesh-double-"));
  const outFile = join(folder, "film.mp4");
  const prompt = "a red boat on a calm sea";
  const caller = { accountId: "double", signal: new AbortController().signal };
  await using renderer = createBuiltinRenderer({ threads: 1, clock: systemClock });
  const image = await renderer.image({ prompt, width: 512, height: 512 }, caller);
  const film = { prompt, width: 320, height: 180, durationSeconds: 6, audio: "none", outFile };
  await renderer.video({ ...film, audio: "none" }, caller);
  const song = await renderer.music({ mode: "instrumental", title: prompt }, caller);
  const video = await readFile(outFile);
  await rm(folder, { recursive: true });
  return { images: [Buffer.from(image.bytes)], video, sound: Buffer.from(song.bytes) };
}

/** Prints the address of a double, and does an action for each line with its word. */
export async function* talk(
  name: string,
  { baseUrl, key = "(none)", words }: Pick<ByHand, "baseUrl" | "key" | "words">,
  told: AsyncIterable<string>,
): AsyncGenerator<string> {
  yield `${name}: baseUrl ${baseUrl} key ${key}`;
  for await (const word of told) {
    const act = Object.hasOwn(words, word) ? words[word] : undefined;
    await act?.();
    yield act ? `${name}: ${word}` : `${name} knows: ${Object.keys(words).join(" ")}`;
  }
}

async function run(name: string, port: number): Promise<void> {
  const start = Object.entries(doublesByHand).find(([known]) => known === name)?.[1];
  if (!start) throw new Error(`one of ${Object.keys(doublesByHand).join(", ")}, and a port`);
  await using double = await start(port, await makeOutputs());
  const told = createInterface({ input: process.stdin });
  for await (const line of talk(name, double, told)) process.stdout.write(`${line}\n`);
}

const [, script, name = "", port = "0"] = process.argv;
if (script === import.meta.filename) await run(name, Number(port));
