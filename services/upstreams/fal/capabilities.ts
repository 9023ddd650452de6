// The row of fal in `../protocols.ts`: what it can do, and which keys the catalog may give it.

import { UpstreamProtocol } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { type Capabilities, type JobAbilities, jobKeys, remoteKeys } from "../capabilities.ts";

/** The same for every kind: a request in the queue of a model, which reports no percentage. */
const job = {
  submit: "once",
  resume: true,
  cancel: true,
  progress: "queue",
} as const satisfies JobAbilities;

const references = { sent: "upload" } as const;

/** fal's queue. */
export const fal = {
  wire: UpstreamProtocol.FAL,
  key: { name: "authorization", scheme: "Key" },
  // "User is locked. Reason: Exhausted balance."
  emptyAccount: [403],
  tooEarly: "Request is still in progress",
  keys: [...remoteKeys, ...jobKeys, "references"],
  callsBy: "template",
  serves: {
    image: { ...job, references, takesMask: true },
    video: { ...job, references },
    music: job,
  },
} as const satisfies Capabilities;
