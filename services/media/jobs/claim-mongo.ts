import type { Collection, Filter } from "mongodb";
import type { MongoDatabase } from "#kit/mongo/connect.ts";
import { awayRefusal, isDuplicate, mongoFault } from "#kit/mongo/errors.ts";
import { maxLostJobs } from "../limits.ts";
import { type Candidate, fairestOf, fewestRunning } from "./fairness.ts";
import type { Job } from "./job.ts";
import { maxClaimRounds } from "./limits-mongo.ts";
import { type JobDocument, jobCollections, type ServedDocument } from "./schema-mongo.ts";
import type { ClaimQuery } from "./store.ts";
import { createTurns, type Transition } from "./transition-mongo.ts";
import { readHeads } from "./waiting-mongo.ts";

/** A job that might be claimed, and the place to be taken with it. */
interface PlacedCandidate extends Candidate {
  place?: number;
}

/**
 * Claims fairest jobs. What a claim reads may be old by the time it writes: then the version of the job, or the unique
 * place, refuses it, and it looks anew. Keeps where a search of very many lanes ended.
 */
export function createClaim(
  db: MongoDatabase,
  jobs: Collection<JobDocument>,
  transition: Transition,
): (query: ClaimQuery) => Promise<Job | undefined> {
  const served = db.collection<ServedDocument>(jobCollections.served);
  const begins = new Map<string, string>();
  const inTurn = createTurns();

  const search = async (query: ClaimQuery): Promise<PlacedCandidate | undefined> => {
    const from = begins.get(query.kind) ?? "";
    const [running, lost] = await Promise.all([
      readRunning(jobs, query.kind),
      readLost(jobs, query),
    ]);
    const { heads, end } = await readHeads(jobs, {
      kind: query.kind,
      after: from,
      isModelFull: (model) => freePlace(running, model, query) === "none",
      isUpstreamFull: (upstream) => query.fullUpstreams.includes(upstream),
      isAccountFull: (upstream, id) => query.fullAccounts?.get(upstream)?.includes(id) ?? false,
    });
    if (end === undefined) begins.delete(query.kind);
    else begins.set(query.kind, end);
    const candidates = [
      ...lost.map((job) => ({ ...job, running: (running.ofAccount.get(job.accountId) ?? 1) - 1 })),
      ...heads.map(({ model, ...head }): PlacedCandidate => {
        const place = freePlace(running, model, query);
        const count = running.ofAccount.get(head.accountId) ?? 0;
        return { ...head, running: count, ...(typeof place === "number" ? { place } : {}) };
      }),
    ];
    // The lanes before may have work again.
    if (candidates.length === 0 && from !== "") return search(query);
    return fairest(served, query.kind, candidates);
  };
  const claim = async (query: ClaimQuery): Promise<Job | undefined> => {
    const { kind, owner, now, leasesOverAt } = query;
    const command = { kind: "claim", owner, now, leasesOverAt } as const;
    for (let round = 0; round < maxClaimRounds; round++) {
      const found = await db.attempt(() => search(query));
      if (!found) return undefined;
      const job = await transition(found.jobId, command, found.place).catch(unlessPlaceIsTaken);
      if (!job) continue;
      await remember(served, servedId(kind, job.accountId), now);
      return job;
    }
    throw awayRefusal(new Error("every job that was found was claimed by others"));
  };
  return (query) => inTurn(query.kind, () => claim(query));
}

/** As JobStore has it. */
export async function isAnyClaimable(
  jobs: Collection<JobDocument>,
  kinds: readonly string[],
  leasesOverAt: number,
): Promise<boolean> {
  const ofKinds = { "spec.kind": { $in: [...kinds] } };
  const waiting = { ...ofKinds, lane: { $gt: "" } };
  const lost = { ...ofKinds, state: "running", "lease.until": { $lte: leasesOverAt } };
  const found = await Promise.all(
    [waiting, lost].map((filter) =>
      jobs.findOne(filter as Filter<JobDocument>, { projection: { _id: 1 } }),
    ),
  );
  return found.some((job) => job !== null);
}

/** Running jobs of a kind. */
interface Running {
  ofAccount: Map<string, number>;
  /** Of each model, the places that are taken; undefined for a job that began while the model had no limit. */
  places: Map<string, (number | undefined)[]>;
}

async function readRunning(jobs: Collection<JobDocument>, kind: string): Promise<Running> {
  const found = await jobs
    .find({ state: "running", "spec.kind": kind } as Filter<JobDocument>, {
      projection: { _id: 0, accountId: 1, "spec.model": 1, place: 1 },
    })
    .toArray();
  const running: Running = { ofAccount: new Map(), places: new Map() };
  for (const { accountId, spec, place } of found) {
    running.ofAccount.set(accountId, (running.ofAccount.get(accountId) ?? 0) + 1);
    const places = running.places.get(spec.model) ?? [];
    places.push(place);
    running.places.set(spec.model, places);
  }
  return running;
}

/**
 * A place for one more job of a model; "any" where the model has no limit. Jobs without a place, or with one above a limit
 * that was lowered, count too: they only become fewer, so whoever saw more of them allows himself fewer places.
 */
function freePlace(
  { places }: Running,
  model: string,
  { modelLimits }: ClaimQuery,
): number | "any" | "none" {
  const limit = modelLimits.get(model);
  if (limit === undefined) return "any";
  const taken = places.get(model) ?? [];
  const others = taken.filter((place) => place === undefined || place >= limit).length;
  for (let place = 0; place < limit - others; place++) if (!taken.includes(place)) return place;
  return "none";
}

async function readLost(
  jobs: Collection<JobDocument>,
  { kind, now, leasesOverAt = now, fullUpstreams, fullAccounts = new Map() }: ClaimQuery,
): Promise<Omit<Candidate, "running">[]> {
  const ofFull = [...fullAccounts].map(([upstream, ids]) => ({
    upstream,
    accountId: { $in: ids },
  }));
  const filter = {
    state: "running",
    "spec.kind": kind,
    "lease.until": { $lte: leasesOverAt },
    upstream: { $nin: [...fullUpstreams] },
    ...(ofFull.length > 0 ? { $nor: ofFull } : {}),
  } as Filter<JobDocument>;
  const found = await jobs
    .find(filter, { projection: { accountId: 1, createdAt: 1 } })
    .sort({ "lease.until": 1 })
    .limit(maxLostJobs)
    .toArray();
  return found.map(({ _id, accountId, createdAt }) => ({ jobId: _id, accountId, createdAt }));
}

async function fairest(
  served: Collection<ServedDocument>,
  kind: string,
  candidates: readonly PlacedCandidate[],
): Promise<PlacedCandidate | undefined> {
  const tied = fewestRunning(candidates);
  const ids = new Set(tied.map(({ accountId }) => servedId(kind, accountId)));
  const times = ids.size > 1 ? await served.find({ _id: { $in: [...ids] } }).toArray() : [];
  const at = new Map(times.map((one) => [one._id, one.at]));
  return fairestOf(tied, (accountId) => at.get(servedId(kind, accountId)) ?? 0);
}

function servedId(kind: string, accountId: string): string {
  return `${kind} ${accountId}`;
}

/** Once, and no longer than a primary takes: the job is claimed, and its lease runs. */
async function remember(
  served: Collection<ServedDocument>,
  _id: string,
  now: number,
): Promise<void> {
  const options = { upsert: true, writeConcern: { w: 1 } } as const;
  await served.updateOne({ _id }, { $max: { at: now } }, options).catch((error) => {
    if (mongoFault(error) === undefined) throw error;
  });
}

function unlessPlaceIsTaken(error: unknown): undefined {
  if (!isDuplicate(error)) throw error;
}
