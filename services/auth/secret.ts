import { createHash } from "node:crypto";
import type { Ids } from "#kit/ids.ts";
import type { SecretDigest } from "./key.ts";
import { secretChars } from "./limits.ts";

/** A new secret: "gm_" and 40 characters of [A-Za-z0-9]. */
export function makeSecret(ids: Ids): string {
  return `gm_${ids.secret(secretChars)}`;
}

/**
 * A secret as it is kept. One round of SHA-256 is enough: a secret is drawn at random (or at least 20 characters of an
 * operator's choice), so there is no dictionary to slow down, and the edge hashes one on every request.
 */
export function digestOf(secret: string): SecretDigest {
  return { sha256: createHash("sha256").update(secret).digest(), hint: secret.slice(-4) };
}
