import type { Collection } from "mongodb";
import { maxClaimGroups } from "../limits.ts";
import { laneOf, namesOf } from "./docs-mongo.ts";
import { claimPage } from "./limits-mongo.ts";
import type { JobDocument } from "./schema-mongo.ts";

/** The oldest waiting job of a lane. */
export interface Head {
  jobId: string;
  model: string;
  accountId: string;
  createdAt: number;
}

/** Lanes in their order, from one on. */
export interface HeadsQuery {
  kind: string;
  /** Lanes up to this one are left out. */
  after: string;
  isModelFull(model: string): boolean;
  isUpstreamFull(upstream: string): boolean;
  /** Has the account its share of the places at the upstream? */
  isAccountFull(upstream: string, accountId: string): boolean;
}

/**
 * The heads of all lanes but those of full models, upstreams and accounts; `end` where there may be more. However many jobs wait,
 * a look reads a page of the index, and the next one begins behind the last lane that this one saw.
 */
export async function readHeads(
  jobs: Collection<JobDocument>,
  { kind, after, isModelFull, isUpstreamFull, isAccountFull }: HeadsQuery,
): Promise<{ heads: Head[]; end: string | undefined }> {
  const heads: Head[] = [];
  let last = after;
  for (let lanes = 0; lanes < maxClaimGroups; ) {
    const page = await jobs
      .find({ "spec.kind": kind, lane: { $gt: last } }, { projection: { lane: 1, createdAt: 1 } })
      .sort({ lane: 1, createdAt: 1, _id: 1 })
      .limit(claimPage)
      .toArray();
    for (const { _id, lane = "", createdAt } of page) {
      // Behind the head of its lane, or skipped with a full one.
      if (lane <= last) continue;
      lanes++;
      const [model, upstream, accountId] = namesOf(lane);
      if (isModelFull(model)) last = laneOf(model, afterAll, "");
      else if (isUpstreamFull(upstream)) last = laneOf(model, upstream, afterAll);
      else {
        last = lane;
        if (!isAccountFull(upstream, accountId))
          heads.push({ jobId: _id, model, accountId, createdAt });
      }
    }
    if (page.length < claimPage) return { heads, end: undefined };
  }
  return { heads, end: last };
}

/** Sorts behind every name: the largest code point. */
const afterAll = "\u{10ffff}";
