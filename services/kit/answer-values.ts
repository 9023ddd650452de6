import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import { Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";

/** A unit of money as answers and commands name it. */
export function unitName(unit: Unit): string {
  return unit === Unit.CREDITS ? "credits" : "usd_micros";
}

/** A time in ISO 8601, with milliseconds; "" for none. */
export function isoTime(time: Timestamp | undefined): string {
  return time ? timestampDate(time).toISOString() : "";
}
