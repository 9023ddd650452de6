// The row of another genmesh in `../protocols.ts`: what it can do, and which keys the catalog may give it.

import { soundFormats } from "#kit/sound/formats.ts";
import { UpstreamProtocol } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { type Capabilities, type JobAbilities, jobKeys, remoteKeys } from "../capabilities.ts";

/** The same for every kind: a job under our idempotency key. */
const job = {
  submit: "repeatable",
  resume: true,
  cancel: true,
  progress: "percent",
  takes: ["seed", "negativePrompt"],
} as const satisfies JobAbilities;

const references = { sent: "upload" } as const;

/** Another deployment of this API. */
export const genmesh = {
  wire: UpstreamProtocol.GENMESH,
  keys: [...remoteKeys, ...jobKeys, "inlineImages"],
  serves: {
    chat: { responses: true, chat: "native", files: true },
    image: { ...job, references, takesQuality: true },
    video: { ...job, references },
    music: job,
    speech: { submit: "repeatable", formats: soundFormats },
    embedding: true,
    transcription: true,
  },
} as const satisfies Capabilities;
