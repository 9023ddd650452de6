// Finds and claims the fairest job in MongoDB, within the catalog's limits. `store-mongo.ts` has the rest of the store.

import type { Collection, Filter } from "mongodb";
import type { MongoDatabase } from "#kit/store/mongo/connect.ts";
import { awayRefusal, isDuplicate, mongoFault } from "#kit/store/mongo/errors.ts";
import { createTurns } from "#kit/store/mongo/turns.ts";
import {
  claimPage,
  enoughIdleGroups,
  linePage,
  maxClaimGroups,
  maxClaimRounds,
  maxLostJobs,
} from "../limits.ts";
import { type Candidate, fairestOf, fewestRunning } from "./fairness.ts";
import type { Job } from "./job.ts";
import type { ClaimQuery, JobStore, WorkQuery } from "./store.ts";
import {
  type JobDocument,
  jobCollections,
  jobOf,
  laneOf,
  namesOf,
  type ServedDocument,
  type Transition,
} from "./store-mongo-docs.ts";
import { readLine, type WaitingLine } from "./waiting-jobs.ts";

/** A job that could be claimed, and the place to be taken with it. */
interface PlacedCandidate extends Candidate {
  place?: number;
}

/**
 * Claims the fairest jobs, and looks for them. A claim's reads may be old by the time it writes. Then the version of the job, or the
 * unique place, refuses the write, and it looks again. Keeps the place where a search of very many lanes ended, for claims and for
 * looks.
 */
export function createClaim(
  db: MongoDatabase,
  jobs: Collection<JobDocument>,
  transition: Transition,
): Pick<JobStore, "claim" | "peek"> {
  const served = db.collection<ServedDocument>(jobCollections.served);
  const inTurn = createTurns(db.clock);

  const search = async (
    query: WorkQuery,
    begins: Map<string, string>,
  ): Promise<PlacedCandidate | undefined> => {
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
      isIdle: (id) => !running.ofAccount.has(id),
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
    return fairest(served, query.kind, candidates);
  };
  const claimsBegin = new Map<string, string>();
  const peeksBegin = new Map<string, string>();
  const claim = async (query: ClaimQuery): Promise<Job | undefined> => {
    const { kind, owner, now, leasesOverAt } = query;
    const command = { kind: "claim", owner, now, leasesOverAt } as const;
    for (let round = 0; round < maxClaimRounds; round++) {
      const found = await db.attempt(() => search(query, claimsBegin));
      if (!found) return undefined;
      const job = await transition(found.jobId, command, found.place).catch(unlessPlaceIsTaken);
      if (!job) continue;
      await remember(served, servedId(kind, job.accountId), now);
      return job;
    }
    throw awayRefusal(new Error("every job that was found was claimed by others"));
  };
  return {
    claim: (query) => inTurn(query.kind, () => claim(query)),
    peek: (query) =>
      db.attempt(async () => {
        const found = await search(query, peeksBegin);
        const doc = found && (await jobs.findOne({ _id: found.jobId }));
        return doc ? jobOf(doc) : undefined;
      }),
  };
}

/** See JobStore. */
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

/** See JobStore. */
export function readWaitingLine(
  db: MongoDatabase,
  jobs: Collection<JobDocument>,
  kind: string,
): Promise<WaitingLine | undefined> {
  const served = db.collection<ServedDocument>(jobCollections.served);
  return readLine({
    async page(behind) {
      const found = await jobs
        .find(
          { "spec.kind": kind, lane: { $gt: laneOf(...behind).trim() } } as Filter<JobDocument>,
          { projection: { _id: 0, lane: 1, createdAt: 1 } },
        )
        .sort({ lane: 1, createdAt: 1, _id: 1 })
        .limit(linePage)
        .batchSize(linePage)
        .toArray();
      return found.map(({ lane = "", createdAt }) => ({ lane: namesOf(lane), createdAt }));
    },
    async running() {
      const found = await jobs
        .find({ state: "running", "spec.kind": kind } as Filter<JobDocument>, {
          projection: { _id: 0, accountId: 1, "spec.model": 1, upstream: 1 },
        })
        .toArray();
      return found.map(({ accountId, spec, upstream = "" }) => ({
        accountId,
        model: spec.model,
        upstream,
      }));
    },
    served: (accountIds) => readServed(served, kind, accountIds),
  });
}

/** Running jobs of a kind. */
interface Running {
  ofAccount: Map<string, number>;
  /** The taken places of each model. Undefined for a job that began while the model had no limit. */
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
 * A place for one more job of a model. "any" where the model has no limit. Jobs without a place, or with one above a limit that was
 * lowered, count too. Their number only falls. So a claim that saw more of them takes fewer places, never too many.
 */
function freePlace(
  { places }: Running,
  model: string,
  { modelLimits }: WorkQuery,
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
  { kind, now, leasesOverAt = now, fullUpstreams, fullAccounts = new Map() }: WorkQuery,
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
  const ids = [...new Set(tied.map(({ accountId }) => accountId))];
  const at = ids.length > 1 ? await readServed(served, kind, ids) : new Map<string, number>();
  return fairestOf(tied, (accountId) => at.get(accountId) ?? 0);
}

/** When accounts were last served. */
async function readServed(
  served: Collection<ServedDocument>,
  kind: string,
  accountIds: readonly string[],
): Promise<Map<string, number>> {
  const ids = accountIds.map((accountId) => servedId(kind, accountId));
  const found = await served.find({ _id: { $in: ids } }).toArray();
  return new Map(found.map(({ _id, at }) => [_id.slice(kind.length + 1), at]));
}

function servedId(kind: string, accountId: string): string {
  return `${kind} ${accountId}`;
}

/** Once, and for no longer than a primary takes, because the job is claimed and its lease runs. */
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

/** The oldest waiting job of a lane. */
interface Head {
  jobId: string;
  model: string;
  accountId: string;
  createdAt: number;
}

/** Lanes in their order, beginning at one. */
interface HeadsQuery {
  kind: string;
  /** Lanes behind this one come first, then those up to it. */
  after: string;
  isModelFull(model: string): boolean;
  isUpstreamFull(upstream: string): boolean;
  /** Has the account its full share of the places at the upstream? */
  isAccountFull(upstream: string, accountId: string): boolean;
  /** Does the account run no job of the kind? */
  isIdle(accountId: string): boolean;
}

/**
 * The heads of all lanes, except those of full models, upstreams and accounts. The list is cut where enough of idle accounts were seen,
 * so that no fairer one exists, or where there are too many. Then the next search goes on at `end`. A look reads one page of the index,
 * however many jobs wait. The next page begins behind the last lane of this one.
 */
async function readHeads(
  jobs: Collection<JobDocument>,
  { kind, after, isModelFull, isUpstreamFull, isAccountFull, isIdle }: HeadsQuery,
): Promise<{ heads: Head[]; end: string | undefined }> {
  const heads: Head[] = [];
  let [last, until] = [after, behindAll];
  let idle = 0;
  for (let lanes = 0; lanes < maxClaimGroups && idle < enoughIdleGroups; ) {
    const page = await jobs
      .find(
        { "spec.kind": kind, lane: { $gt: last, $lte: until } },
        { projection: { lane: 1, createdAt: 1 } },
      )
      .sort({ lane: 1, createdAt: 1, _id: 1 })
      .limit(claimPage)
      .toArray();
    for (const { _id, lane = "", createdAt } of page) {
      // Behind the head of its lane, or skipped with a full one.
      if (lane <= last) continue;
      if (idle >= enoughIdleGroups) break;
      lanes++;
      const [model, upstream, accountId] = namesOf(lane);
      if (isModelFull(model)) last = laneOf(model, afterAll, "");
      else if (isUpstreamFull(upstream)) last = laneOf(model, upstream, afterAll);
      else {
        last = lane;
        if (isAccountFull(upstream, accountId)) continue;
        if (isIdle(accountId)) idle++;
        heads.push({ jobId: _id, model, accountId, createdAt });
      }
    }
    if (page.length === claimPage || idle >= enoughIdleGroups) continue;
    if (until !== behindAll || after === "") return { heads, end: undefined };
    [last, until] = ["", after];
  }
  return { heads, end: last };
}

/** Sorts behind every name: the largest code point. */
const afterAll = "\u{10ffff}";
/** Behind every lane. */
const behindAll = afterAll;
