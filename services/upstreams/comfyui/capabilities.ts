// The row of ComfyUI in `../protocols.ts`: what it can do, and which keys the catalog may give it.

import { UpstreamProtocol } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { type Capabilities, type JobAbilities, remoteKeys } from "../capabilities.ts";

/** The same for every kind: a graph in the queue of a server that the operator runs. */
const job = {
  // It has no idempotency: a request that is sent twice runs twice. But it runs on the operator's own card, so a second run takes time
  // and costs no money. After a first run that ended, the server's cache answers the second.
  submit: "repeatable",
  resume: true,
  cancel: true,
  progress: "percent",
} as const satisfies JobAbilities;

const references = { sent: "upload" } as const;

/** A ComfyUI server. */
export const comfyui = {
  wire: UpstreamProtocol.COMFYUI,
  keys: [...remoteKeys, "lostAnswer"],
  callsBy: "workflow",
  serves: {
    image: { ...job, references, takesMask: true },
    video: { ...job, references },
    music: job,
  },
} as const satisfies Capabilities;
