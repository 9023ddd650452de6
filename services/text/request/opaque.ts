import { createHash } from "node:crypto";
import { hashInTurns } from "#kit/bytes-in-turns.ts";
import { ErrorReason, refuse } from "#kit/errors.ts";
import type { Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { maxOpaqueStates } from "../limits.ts";
import type { OpaquePart } from "./checked.ts";

/** Who a piece of opaque state was made for, and by which upstream. */
export interface OpaqueMaker {
  /** See {@link opaqueHash}. */
  hash: string;
  accountId: string;
  upstream: string;
}

/** Looks makers up by hash; what is unknown or older than 30 days is left out. */
export type OpaqueMakers = (hashes: readonly string[]) => Promise<OpaqueMaker[]>;

/** Under what a piece of opaque state is remembered: it is not kept itself. */
export function opaqueHash(value: string): string {
  return createHash("sha256").update(value).digest("hex");
}

/** What choosing needs to know. */
export interface PinContext {
  accountId: string;
  /** The model's, in the order of trying; at least one. */
  upstreams: readonly Upstream[];
  /** Is an upstream of this name in the catalog? */
  isKnown(name: string): boolean;
  makers: OpaqueMakers;
}

/**
 * Where a request goes. Opaque state goes back to the upstream that made it and to no other, one that nobody knows to the
 * model's first; without any, all of them may be tried. Refuses with INVALID_VALUE, at the state's field, another
 * account's, another model's upstream's, and states of two upstreams together.
 */
export async function pinUpstream(
  parts: readonly OpaquePart[],
  context: PinContext,
): Promise<readonly Upstream[]> {
  const { upstreams } = context;
  if (parts.length === 0) return upstreams;
  if (parts.length > maxOpaqueStates) refuse(ErrorReason.INVALID_VALUE, { param: "input" });
  // An input can be 64 MiB of state.
  const hashes = await hashInTurns(parts.map(({ value }) => value));
  const hashed = parts.map((part, at) => ({ ...part, hash: hashes[at] ?? "" }));
  const makers = Map.groupBy(
    await context.makers([...new Set(hashed.map((part) => part.hash))]),
    (maker) => maker.hash,
  );
  let pinned: Upstream | undefined;
  for (const { hash, param } of hashed) {
    const known = makers.get(hash);
    if (!known) continue;
    const own = known.find((maker) => maker.accountId === context.accountId);
    if (!own) refuseState(param);
    // An upstream that the catalog no longer has cannot be asked; the state is then as good as unknown.
    if (!context.isKnown(own.upstream)) continue;
    const upstream = upstreams.find((one) => one.name === own.upstream);
    if (!upstream || (pinned && pinned !== upstream)) refuseState(param);
    pinned = upstream;
  }
  return pinned ? [pinned] : upstreams.slice(0, 1);
}

function refuseState(param: string): never {
  refuse(ErrorReason.INVALID_VALUE, {
    param,
    message: `The state in '${param}' does not belong to this account and model.`,
  });
}
