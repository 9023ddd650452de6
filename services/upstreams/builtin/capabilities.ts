// The row of the built-in models in `../protocols.ts`: what they can do, and which keys the catalog may give them.

import { longestSpeechSeconds } from "#common/words/builtin-models.ts";
import { UpstreamProtocol } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { Capabilities, JobAbilities } from "../capabilities.ts";

/** Each attempt renders from the start, which costs nothing. */
const job = {
  submit: "repeatable",
  resume: false,
  cancel: false,
  progress: "percent",
  takes: ["seed"],
} as const satisfies JobAbilities;

const references = { sent: "memory", most: 7 } as const;

/** The models in this process. */
export const builtin = {
  wire: UpstreamProtocol.BUILTIN,
  isLocal: true,
  keys: ["tokenDelayMs", "maxConcurrent"],
  serves: {
    chat: { responses: true, chat: "translated" },
    image: { ...job, progress: "outputs", references },
    video: { ...job, references },
    music: job,
    speech: {
      submit: "repeatable",
      formats: ["mp3", "wav", "pcm"],
      longestSeconds: longestSpeechSeconds,
    },
  },
} as const satisfies Capabilities;
