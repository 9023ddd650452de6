import { RefusalError } from "#kit/base/errors.ts";
import type { JobKind } from "#proto/genmesh/media/v1/media_service_pb.ts";
import type { FailPoint } from "../../services/media/fail-points.ts";
import { alice, createJobsWorld, type JobsWorld } from "../contract/jobs.world.ts";
import { openWorldStores, type StoreVariables } from "../support/world-stores.ts";
import { realUpstreams } from "./jobs.drivers.ts";
import { followTime, type TimeSaid } from "./shared-time.ts";

/** The settings of a soak's process at its start. */
export interface SoakOrders {
  folder: string;
  /** Name the stores on servers. Without any, all stores are in the folder. */
  env: StoreVariables;
  catalogFile: string;
}

/** A submission, in a line of its standard input. */
export interface Submission {
  key: string;
  kind: JobKind;
  body: Record<string, unknown>;
}

/** A line of its standard output. */
export type SoakSaid =
  | TimeSaid
  | { kind: "ready" }
  /** A submission was answered with 202. */
  | { kind: "accepted"; key: string; jobId: string }
  /** A submission got an error, so its caller tries again. */
  | { kind: "refused"; key: string; reason: number }
  /** Its work has reached a step. */
  | { kind: "at"; point: FailPoint };

function say(said: SoakSaid): void {
  process.stdout.write(`${JSON.stringify(said)}\n`);
}

async function submit(world: JobsWorld, { key, kind, body }: Submission): Promise<void> {
  try {
    const { job } = await world.submit(body, { key, kind, principal: alice });
    say({ kind: "accepted", key, jobId: job.jobId });
  } catch (error) {
    if (!(error instanceof RefusalError)) throw error;
    say({ kind: "refused", key, reason: error.reason });
  }
}

/** Takes submissions and works on jobs, until it is killed. */
async function run({ folder, env, catalogFile }: SoakOrders): Promise<void> {
  let take: (submission: Submission) => void = () => {};
  const { clock, liveBy } = await followTime((word) => take(word as Submission));
  const world = await createJobsWorld({
    folder,
    clock,
    openStores: (_, clock) => openWorldStores({ folder, clock, env }),
    upstream: realUpstreams(clock),
    catalogFile,
    failPoints: (point) => say({ kind: "at", point }),
  });
  liveBy(() => world.store.find("none"));
  take = (submission) => void submit(world, submission);
  say({ kind: "ready" });
  await new Promise(() => {});
}

const [, script, orders] = process.argv;
if (script === import.meta.filename && orders) await run(JSON.parse(orders) as SoakOrders);
