// Decides which upstream a request or a job tries first, and which next. Requests of one conversation begin at the same one.

import { hash, randomUUID } from "node:crypto";
import type { Model, Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { type Lane, lanesOf } from "./lanes.ts";

/**
 * The lanes in the order in which a conversation tries them: level by level, and within a level by weighted rendezvous. Each lane gets a
 * number from the names of conversation and lane, and the highest comes first. So all processes agree without asking each other. Where a
 * lane is left out, the other lanes keep their order, so only its own conversations move. `stick`: the name of the conversation.
 */
export function inOrder(lanes: readonly Lane[], stick: string): Lane[] {
  if (lanes.length === 1) return [...lanes];
  if (lanes.every(({ level }, at) => level !== lanes[at - 1]?.level)) return [...lanes];
  const of = numbersOf(stick);
  const scored = lanes.map((lane) => ({ lane, score: scoreOf(lane, of) }));
  return scored
    .sort((a, b) => a.lane.level - b.lane.level || b.score - a.score)
    .map(({ lane }) => lane);
}

/** The upstreams of a model in the order in which a job tries them, which is no part of a conversation. */
export function spread(upstreams: readonly Upstream[], model: Model): readonly Upstream[] {
  if (model.shares.length === 0) return upstreams;
  return inOrder(lanesOf(upstreams, model), randomUUID()).map(({ upstream }) => upstream);
}

/** With it, the share of the first places that a lane gets is exactly its share of the weights. */
function scoreOf({ upstream, weight }: Lane, of: Numbers): number {
  return -weight / Math.log(between(of, laneNumbers(upstream.name)));
}

/** Two numbers of 32 bits that a text is hashed to. */
type Numbers = readonly [number, number];

function numbersOf(text: string): Numbers {
  const bytes = hash("sha256", text, "buffer");
  return [bytes.readUInt32LE(0), bytes.readUInt32LE(4)];
}

/** Of each lane that the catalogs have named. */
const known = new Map<string, Numbers>();

function laneNumbers(name: string): Numbers {
  const numbers = known.get(name) ?? numbersOf(name);
  known.set(name, numbers);
  return numbers;
}

/** A number above 0 and below 1, evenly spread over the pairs. */
function between(a: Numbers, b: Numbers): number {
  return (mixed(mixed(a[0] ^ b[0]) + (a[1] ^ b[1])) + 0.5) / 2 ** 32;
}

/** Spreads each bit over all 32, as the last step of MurmurHash3 does. */
function mixed(bits: number): number {
  let h = bits | 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}
