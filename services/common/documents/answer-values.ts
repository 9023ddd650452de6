// Writes single values of services' messages (units, kinds, times, stored JSON) as the documents of this room and other answers
// show them.

import { type Timestamp, timestampDate, timestampMs } from "@bufbuild/protobuf/wkt";
import { HoldKind, Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";

/** A unit of money by its name in answers and commands. */
export function unitName(unit: Unit): string {
  return unit === Unit.CREDITS ? "credits" : "usd_micros";
}

const holdKinds = new Map<number, string>([
  [HoldKind.TEXT, "text"],
  [HoldKind.SPEECH, "speech"],
  [HoldKind.JOB, "job"],
]);

/** A hold's kind by its name in answers and commands. "" where it is unknown. */
export function holdKindName(kind: HoldKind): string {
  return holdKinds.get(kind) ?? "";
}

/** A time in ISO 8601, with milliseconds. "" for none. */
export function isoTime(time: Timestamp | undefined): string {
  return time ? timestampDate(time).toISOString() : "";
}

/** The same time. Null for none. */
export function isoTimeOrNull(time: Timestamp | undefined): string | null {
  return time ? isoTime(time) : null;
}

/** A time in whole seconds since 1970, as in OpenAI's documents. 0 for none. */
export function unixSeconds(time: Timestamp | undefined): number {
  return time ? Math.floor(timestampMs(time) / 1_000) : 0;
}

/** JSON that a service wrote; the text where it is none. */
export function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
