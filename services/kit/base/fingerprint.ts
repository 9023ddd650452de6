// Makes the fingerprint of a JSON body, by which a request that is sent again is known.

import { createHash } from "node:crypto";
import canonicalize from "canonicalize";
import { ErrorReason, refuse } from "./errors.ts";
import type { JsonValue } from "./json.ts";

/**
 * SHA-256 (hexadecimal) of the canonical form (RFC 8785), which is the same for bodies that mean the same. A body without such a form
 * is refused with INVALID_JSON. It has a number beyond a double's range, or half a character. `withEscapedHalves` gives a body with
 * half a character a form.
 */
export function fingerprintOf(value: JsonValue): string {
  const hash = createHash("sha256");
  try {
    hash.update(canonicalize(value) ?? "");
  } catch (cause) {
    refuse(ErrorReason.INVALID_JSON, { cause });
  }
  return hash.digest("hex");
}
