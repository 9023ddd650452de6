import { writeFile } from "node:fs/promises";
import { sampleMp3, sampleMp4, samplePng } from "../../services/upstreams/media/samples.fixture.ts";
import {
  type ScriptedMediaUpstream,
  startScriptedMediaUpstream,
} from "../support/scripted-media-upstream.ts";
import { type ScriptedUpstream, startScriptedUpstream } from "../support/scripted-upstream.ts";

/** The demo account's key in the kept states. */
export const demoKey = "upgrade-test-key-0123456789";
/** The operator's token in the kept states. */
export const adminToken = "upgrade-test-admin-token";

/** An answer that its idempotency key must find again. */
export interface KeptAnswer {
  path: string;
  body: object;
  key: string;
  /** The parsed JSON without the address of the process. */
  answer: unknown;
}

/** The answers of the older version, just before it was killed. */
export interface Expected {
  /** The time of the kill in ms since the epoch. */
  madeAt: number;
  /** By secret: the status of a request with it, and its account and key. */
  keys: { secret: string; status: number; accountId: string; keyId: string }[];
  /** `GET /billing`, by secret. */
  billing: Record<string, unknown>;
  answers: KeptAnswer[];
  /** `GET` of ended jobs, by path below the base URL. */
  jobs: Record<string, unknown>;
  /** Private files, by path, with a hash of their bytes. */
  files: { path: string; sha256: string }[];
  /** Paths of jobs that must still complete. */
  unfinished: string[];
  /** A hold in review that only the operator ends. */
  review: { holdId: string; amountMicros: string };
  /** Accounts and the number of their entries. */
  accounts: { accountId: string; entries: number }[];
}

/** A job keeps its upstream's address, so this port stays the same. It is below the ports that systems choose. */
const mediaPort = 18_733;

/** The upstreams behind a kept state. */
export interface UpgradeUpstreams extends AsyncDisposable {
  text: ScriptedUpstream;
  media: ScriptedMediaUpstream;
  writeCatalog(file: string): Promise<void>;
}

export async function startUpstreams(): Promise<UpgradeUpstreams> {
  await using stack = new AsyncDisposableStack();
  const text = stack.use(await startScriptedUpstream());
  const outputs = {
    images: [await samplePng(64, 64)],
    video: sampleMp4({ width: 854, height: 480 }),
    sound: sampleMp3(1),
  };
  const media = stack.use(await startScriptedMediaUpstream("openai", outputs, { port: mediaPort }));
  const owned = stack.move();
  return {
    text,
    media,
    writeCatalog: (file) =>
      writeFile(file, JSON.stringify(catalogOf(text.baseUrl, media.baseUrl), undefined, 2)),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

function catalogOf(text: string, media: string): object {
  return {
    developerPrompt: "Be brief.",
    upstreams: {
      text: { protocol: "openai", baseUrl: text },
      media: { protocol: "openai", baseUrl: media },
    },
    models: [
      {
        id: "chat",
        kind: "chat",
        upstream: "text",
        maxInputTokens: 20_000,
        maxOutputTokens: 1_000,
        safetyMarginTokens: 100,
        reasoningEfforts: [],
        reasoningAliases: {},
        inputModalities: ["text"],
        tools: ["*"],
        pricing: {
          inputUsdMicrosPerMillionTokens: 1_000_000,
          cachedInputUsdMicrosPerMillionTokens: 250_000,
          outputUsdMicrosPerMillionTokens: 4_000_000,
        },
      },
      {
        id: "image",
        kind: "image",
        upstream: "media",
        creditPrice: 5,
        sizes: ["64x64"],
        availableAspectRatios: ["auto", "1:1"],
        maxReferences: 1,
      },
      {
        id: "video",
        kind: "video",
        upstream: "media",
        // One job runs, and the next one waits.
        maxConcurrent: 1,
        maxReferences: 1,
        availableAspectRatios: ["auto"],
        videoOptions: [{ durationSeconds: 6, resolution: "480p", modes: ["t2v"], credits: 10 }],
      },
      {
        id: "speech",
        kind: "speech",
        upstream: "media",
        voices: ["alloy"],
        pricing: { usdMicrosPerMillionCharacters: 2_500_000 },
      },
    ],
  };
}
