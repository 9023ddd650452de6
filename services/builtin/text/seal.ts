// Packs what the text model must remember into opaque state, and unpacks it in the next turn.

import { createHash } from "node:crypto";
import { deflateRawSync, inflateRawSync } from "node:zlib";
import { isJsonObject, type JsonObject } from "#kit/base/json.ts";

/** Notes are short. A longer unpacked text cannot be one. */
const maxNoteBytes = 64 * 1024;
const prefix = "gmb1";

/** A note of this model to itself as opaque state: packed, with a checksum. It is only hidden from a quick look. */
export function seal(note: JsonObject): string {
  const packed = deflateRawSync(JSON.stringify(note)).toString("base64url");
  return `${prefix}.${packed}.${checksum(packed)}`;
}

/** The note in opaque state that {@link seal} made. Undefined for any other or changed state. */
export function unseal(state: string): JsonObject | undefined {
  const [mark, packed, sum, ...rest] = state.split(".");
  if (mark !== prefix || !packed || sum !== checksum(packed) || rest.length > 0) return undefined;
  try {
    const bytes = inflateRawSync(Buffer.from(packed, "base64url"), {
      maxOutputLength: maxNoteBytes,
    });
    const note: unknown = JSON.parse(bytes.toString());
    return isJsonObject(note) ? note : undefined;
  } catch {
    return undefined;
  }
}

function checksum(packed: string): string {
  return createHash("sha256").update(packed).digest("hex").slice(0, 16);
}
