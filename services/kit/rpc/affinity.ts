// Lets equal requests meet at one replica: `peer-call.ts` marks a call, and `peers-dns.ts` chooses the address by the mark.

import { hash } from "node:crypto";
import type { Principal } from "./principal.ts";

/**
 * Header of calls that should meet at one replica. Equal requests find each other there at once, and not through the store. The pool of
 * addresses alone reads it, and it is sent no further. No behaviour may depend on it.
 */
export const affinityHeader = "genmesh-affinity";

/** A value that equal requests share, made of the key's id and the Idempotency-Key. It reveals neither. */
export function affinityOf({ keyId }: Principal, idempotencyKey: string): string {
  return hash("sha256", JSON.stringify([keyId, idempotencyKey]), "base64url");
}

/**
 * How much `origin` is wanted for this affinity, 0 to 2^32 - 1 (rendezvous hashing). Every caller that knows the same origins prefers
 * the same one. An origin that is added or removed changes only its own share.
 */
export function affinityRank(affinity: string, origin: string): number {
  // FNV-1a, then the last step of MurmurHash3, because origins often differ in their last digit alone.
  let h = 0x811c9dc5;
  const text = `${origin} ${affinity}`;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}
