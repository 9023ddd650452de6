// The row in `../protocols.ts` of upstreams whose HTTP the catalog declares: what such an upstream can do, and which keys the
// catalog may give it.

import { UpstreamProtocol } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { type Capabilities, type JobAbilities, jobKeys, remoteKeys } from "../capabilities.ts";

/** The least that every upstream can do. Its declaration says more: see abilities.ts. */
const job = {
  submit: "once",
  resume: true,
  cancel: true,
  progress: "percent",
} as const satisfies JobAbilities;

const references = { sent: "inline" } as const;

/** An upstream whose HTTP the catalog declares. */
export const jobs = {
  wire: UpstreamProtocol.JOBS,
  keys: [...remoteKeys, ...jobKeys, "jobs"],
  callsBy: "template",
  serves: {
    image: { ...job, references, takesMask: true },
    video: { ...job, references },
    music: job,
  },
} as const satisfies Capabilities;
