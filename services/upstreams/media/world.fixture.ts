// Drivers of media for tests, with real connections and a real blob store. Only time is simulated.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { create } from "@bufbuild/protobuf";
import { randomIds } from "#kit/base/ids.ts";
import { createLogger } from "#kit/base/logger.ts";
import { createMetrics } from "#kit/base/metrics.ts";
import { createImageVerifier } from "#kit/images/index.ts";
import { createGuardedFetcher } from "#kit/outside/index.ts";
import { openFolderBlobs } from "#kit/store/blobs/folder.ts";
import { type Clock, systemClock } from "#kit/time/clock.ts";
import { createHttpClient } from "#kit/upstream/client.ts";
import {
  type Upstream,
  UpstreamProtocol,
  UpstreamSchema,
} from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { createBuiltinRenderer } from "../../builtin/index.ts";
import { createPools } from "../pools/index.ts";
import { createMediaUpstreams, type MediaUpstreamsContext } from "./index.ts";
import type { GenerationRequest, GenerationTask, ReferenceBytes, SpeechTask } from "./port.ts";

/** The key of the world's upstreams. */
export const upstreamKey = "sk-of-the-upstream";

export const imageRequest: Extract<GenerationRequest, { kind: "image" }> = {
  ...{ kind: "image", prompt: "a red boat", count: 1, width: 1024, height: 1024 },
  ...{ size: undefined, resolution: undefined, aspectRatio: undefined },
};

export const videoRequest: Extract<GenerationRequest, { kind: "video" }> = {
  ...{ kind: "video", prompt: "waves", mode: "t2v", durationSeconds: 6, resolution: "720p" },
  ...{ aspectRatio: "16:9", audio: "none", firstLastFrame: false },
};

export const musicRequest: Extract<GenerationRequest, { kind: "music" }> = {
  ...{ kind: "music", mode: "lyrics", title: "Tides", description: "slow", lyrics: "la la" },
};

/**
 * One verifier for all worlds of a test process: its decoder takes longer to start than most tests take. It ends by itself when it has
 * no image for a while, and with its test process.
 */
const verifier = createImageVerifier({ processes: 1, memoryMb: 512, timeoutMs: 20_000 });

/**
 * Drivers with real connections, a real verifier and a real blob store. Only time is simulated: pauses are noted and not waited for.
 */
export async function createWorld(overrides: Partial<MediaUpstreamsContext> = {}) {
  const folder = await mkdtemp(join(tmpdir(), "generate-"));
  const tempDir = await mkdtemp(join(tmpdir(), "generate-temp-"));
  const { clock, pauses } = quickClock();
  const logLines: string[] = [];
  const renderer = createBuiltinRenderer({ threads: 1, clock: systemClock });
  const blobs = await openFolderBlobs({ folder, clock, ids: randomIds });
  const metrics = createMetrics();
  const context: MediaUpstreamsContext = {
    metrics,
    // A rest is no pause of a driver.
    pools: createPools({ clock: systemClock, metrics }),
    log: createLogger("debug", { write: (line) => void logLines.push(line) }),
    secrets: (name) => (name === "UPSTREAM_KEY" ? upstreamKey : undefined),
    http: createHttpClient(),
    verifier,
    fetcher: createGuardedFetcher({ allowPrivate: true }),
    renderer,
    clock,
    tempDir,
    ...overrides,
  };
  const upstreams = createMediaUpstreams(context);
  let stores = 0;

  /** A task whose outputs are written to the blob store, with its reports. */
  function task(asked: Partial<GenerationTask> & Pick<GenerationTask, "upstream" | "request">) {
    const resumeIds: string[] = [];
    const progress: number[] = [];
    const sendings: number[] = [];
    const task: GenerationTask = {
      accountId: "acc_1",
      jobId: "job_1",
      idempotencyKey: "job_1",
      upstreamModel: "model-up",
      references: [],
      resumeId: undefined,
      sending: async () => void sendings.push(1),
      saveResumeId: async (id) => void resumeIds.push(id),
      progress: (percent) => void progress.push(percent),
      store: async (source, mimeType) => {
        const blobKey = `out/${mimeType}/${++stores}`;
        const chunks = source instanceof Uint8Array ? Readable.from([source]) : source;
        return { blobKey, ...(await blobs.put(blobKey, chunks, task.signal)) };
      },
      // Rendering takes as long as the machine needs.
      signal: AbortSignal.timeout(55_000),
      ...asked,
    };
    return { task, resumeIds, progress, sendings };
  }

  return {
    upstreams,
    pauses,
    logLines,
    metrics,
    tempDir,
    task,
    /** The bytes under a key. */
    stored: async (blobKey: string) => buffer(await blobs.openRead(blobKey)),
    /** Keys of everything that was stored. */
    async storedKeys() {
      const keys: string[] = [];
      for await (const { key } of blobs.list()) keys.push(key);
      return keys.sort();
    },
    async [Symbol.asyncDispose]() {
      await context.http[Symbol.asyncDispose]();
      await renderer[Symbol.asyncDispose]();
      await rm(folder, { recursive: true });
      await rm(tempDir, { recursive: true });
    },
  };
}

/** An upstream as the catalog gives it. */
export function upstreamAt(
  baseUrl: string,
  protocol: Exclude<keyof typeof UpstreamProtocol, "UNSPECIFIED"> = "OPENAI",
  asked: { apiKeyEnv?: string; timeoutMs?: bigint; idleTimeoutMs?: bigint; name?: string } = {},
): Upstream {
  return create(UpstreamSchema, {
    name: "studio",
    protocol: UpstreamProtocol[protocol],
    baseUrl,
    apiKeyEnv: "UPSTREAM_KEY",
    timeoutMs: 10_000n,
    idleTimeoutMs: 5_000n,
    connectTimeoutMs: 2_000n,
    ...asked,
  });
}

/** A text to speak. */
export function speechTask(upstreams: Upstream[], asked: Partial<SpeechTask> = {}): SpeechTask {
  return {
    ...{
      accountId: "acc_1",
      requestId: "speech_1",
      text: "Hello there.",
      voice: "alloy",
      language: "en",
      speed: 1.25,
      format: "mp3",
    },
    sending() {},
    reach: async () => {},
    ...{ upstreamModel: "tts-up", upstreams, signal: AbortSignal.timeout(20_000) },
    ...asked,
  };
}

/** A reference with these bytes. */
export function reference(bytes: Uint8Array, mimeType = "image/png"): ReferenceBytes {
  return { mimeType, width: 64, height: 48, open: async () => Readable.from([bytes]) };
}

function quickClock(): { clock: Clock; pauses: number[] } {
  const pauses: number[] = [];
  let now = Date.UTC(2026, 0, 15, 12);
  const clock: Clock = {
    now: () => now,
    steady: () => now,
    async sleep(ms, signal) {
      signal?.throwIfAborted();
      pauses.push(ms);
      now += ms;
      await new Promise((resolve) => setImmediate(resolve));
      signal?.throwIfAborted();
    },
  };
  return { clock, pauses };
}
