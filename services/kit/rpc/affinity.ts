import { hash } from "node:crypto";
import type { Principal } from "./principal.ts";

/**
 * Header of calls that shall meet at one replica: equal requests find each other there at once, not by way of the store.
 * It is for the pool of addresses alone and goes no further. Nothing may depend on it.
 */
export const affinityHeader = "genmesh-affinity";

/** What equal requests have in common: whose they are, and the Idempotency-Key. Tells neither. */
export function affinityOf({ keyId }: Principal, idempotencyKey: string): string {
  return hash("sha256", JSON.stringify([keyId, idempotencyKey]), "base64url");
}

/**
 * How much `origin` is wanted for this affinity, 0 to 2^32 - 1 (rendezvous hashing): every caller that knows the same origins prefers
 * the same one, and one that comes or goes takes or leaves only its own share.
 */
export function affinityRank(affinity: string, origin: string): number {
  // FNV-1a, then the last step of MurmurHash3: origins often differ in their last digit alone.
  let h = 0x811c9dc5;
  const text = `${origin} ${affinity}`;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}
