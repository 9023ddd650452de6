// The table of all drivers of images, video, music and speech, by protocol. A driver that a row of `../protocols.ts` asks for
// cannot be missing.

import type { Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { generateBuiltin, speakBuiltin } from "../builtin/media.ts";
import type { Capabilities } from "../capabilities.ts";
import { generateAtComfyUi } from "../comfyui/generate.ts";
import { cancelAtComfyUi } from "../comfyui/task.ts";
import { speakElevenLabs } from "../elevenlabs/speech.ts";
import { cancelAtFal, generateAtFal } from "../fal/jobs.ts";
import { cancelAtGenmesh, generateAtGenmesh } from "../genmesh/jobs.ts";
import { speakAtGenmesh } from "../genmesh/speech.ts";
import { cancelByDeclaration } from "../jobs/cancel.ts";
import { generateByDeclaration } from "../jobs/generate.ts";
import { generateOpenAiImages } from "../openai/images.ts";
import { speakOpenAi } from "../openai/speech.ts";
import { generateOpenAiVideo } from "../openai/videos.ts";
import {
  type ProtocolName,
  type ProtocolServing,
  protocolName,
  type protocols,
} from "../protocols.ts";
import { cancelAtReplicate, generateAtReplicate } from "../replicate/jobs.ts";
import type { DriverContext } from "./context.ts";
import type {
  CancelTask,
  GeneratedOutput,
  GenerationRequest,
  GenerationTask,
  SpeechTask,
} from "./port.ts";

type JobKind = GenerationRequest["kind"];

/** Generates for one kind of job at upstreams of one protocol. */
export interface JobDriver<Kind extends JobKind = JobKind> {
  /** See `MediaUpstreams.generate`. */
  generate(
    context: DriverContext,
    task: GenerationTask,
    request: Extract<GenerationRequest, { kind: Kind }>,
  ): Promise<GeneratedOutput[]>;
  /** See `MediaUpstreams.cancel`. Present where the protocol's row says so. */
  cancel?(context: DriverContext, task: CancelTask): Promise<boolean>;
}

/** Resolves with the bytes of speech in the task's format, which are not verified yet. */
export type SpeechDriver = (
  context: DriverContext,
  task: SpeechTask,
  upstream: Upstream,
) => Promise<Uint8Array>;

/** A driver for each kind in the protocol's row, with `cancel` where the row has it. */
type JobDrivers<Serves extends Capabilities["serves"]> = {
  [Kind in JobKind & keyof Serves]: JobDriver<Kind> &
    (Serves[Kind] extends { cancel: true } ? Required<JobDriver<Kind>> : { cancel?: never });
};

const jobDrivers: {
  [Name in ProtocolServing<JobKind>]: JobDrivers<(typeof protocols)[Name]["serves"]>;
} = {
  openai: {
    image: { generate: generateOpenAiImages },
    video: { generate: generateOpenAiVideo },
  },
  genmesh: {
    image: { generate: generateAtGenmesh, cancel: cancelAtGenmesh },
    video: { generate: generateAtGenmesh, cancel: cancelAtGenmesh },
    music: { generate: generateAtGenmesh, cancel: cancelAtGenmesh },
  },
  comfyui: {
    image: { generate: generateAtComfyUi, cancel: cancelAtComfyUi },
    video: { generate: generateAtComfyUi, cancel: cancelAtComfyUi },
    music: { generate: generateAtComfyUi, cancel: cancelAtComfyUi },
  },
  builtin: {
    image: { generate: generateBuiltin },
    video: { generate: generateBuiltin },
    music: { generate: generateBuiltin },
  },
  fal: {
    image: { generate: generateAtFal, cancel: cancelAtFal },
    video: { generate: generateAtFal, cancel: cancelAtFal },
    music: { generate: generateAtFal, cancel: cancelAtFal },
  },
  replicate: {
    image: { generate: generateAtReplicate, cancel: cancelAtReplicate },
    video: { generate: generateAtReplicate, cancel: cancelAtReplicate },
    music: { generate: generateAtReplicate, cancel: cancelAtReplicate },
  },
  jobs: {
    image: { generate: generateByDeclaration, cancel: cancelByDeclaration },
    video: { generate: generateByDeclaration, cancel: cancelByDeclaration },
    music: { generate: generateByDeclaration, cancel: cancelByDeclaration },
  },
};

const speechDrivers: Readonly<Record<ProtocolServing<"speech">, SpeechDriver>> = {
  openai: speakOpenAi,
  genmesh: speakAtGenmesh,
  elevenlabs: speakElevenLabs,
  builtin: speakBuiltin,
};

/** The driver of an upstream's protocol for a kind. Undefined where the protocol has none. */
export function jobDriverOf({ protocol }: Upstream, kind: JobKind): JobDriver | undefined {
  const all: Partial<Record<ProtocolName, Partial<Record<JobKind, JobDriver>>>> = jobDrivers;
  const name = protocolName(protocol);
  return name && all[name]?.[kind];
}

/** The speech driver of an upstream's protocol. Undefined where the protocol has none. */
export function speechDriverOf({ protocol }: Upstream): SpeechDriver | undefined {
  const all: Partial<Record<ProtocolName, SpeechDriver>> = speechDrivers;
  const name = protocolName(protocol);
  return name && all[name];
}
