// The row of Replicate in `../protocols.ts`: what it can do, and which keys the catalog may give it.

import { UpstreamProtocol } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { type Capabilities, type JobAbilities, jobKeys, remoteKeys } from "../capabilities.ts";

/** The same for every kind: a prediction. Its log shows its progress, where its model writes that. */
const job = {
  submit: "once",
  resume: true,
  cancel: true,
  progress: "percent",
} as const satisfies JobAbilities;

const references = { sent: "upload" } as const;

/** Replicate's predictions. */
export const replicate = {
  wire: UpstreamProtocol.REPLICATE,
  keys: [...remoteKeys, ...jobKeys, "references"],
  callsBy: "template",
  serves: {
    image: { ...job, references, takesMask: true },
    video: { ...job, references },
    music: job,
  },
} as const satisfies Capabilities;
