// Reads the query of a request. Each function refuses an invalid value.

import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { FastifyRequest } from "fastify";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { maxQueryValueLength } from "./limits.ts";
import { integer } from "./schemas.ts";

/** A query parameter, or undefined where it is absent or empty. Refuses one that is repeated or over 512 characters. */
export function queryString(request: FastifyRequest, name: string): string | undefined {
  const value = (request.query as Record<string, unknown>)[name];
  if (value === undefined || value === "") return undefined;
  if (typeof value !== "string") refuse(ErrorReason.INVALID_TYPE, { param: name });
  if (value.length > maxQueryValueLength) refuse(ErrorReason.INVALID_VALUE, { param: name });
  return value;
}

/** A whole number between 1 and `most`. */
export function queryLimit(
  request: FastifyRequest,
  bounds: { most: number; default: number },
): number {
  const text = queryString(request, "limit");
  if (text === undefined) return bounds.default;
  if (!/^\d{1,9}$/.test(text)) refuse(ErrorReason.INVALID_TYPE, { param: "limit" });
  const value = Number(text);
  if (value < 1 || value > bounds.most) {
    refuse(ErrorReason.INVALID_VALUE, {
      param: "limit",
      message: `The parameter 'limit' must lie between 1 and ${bounds.most}.`,
    });
  }
  return value;
}

/** One of a table's names. */
export function queryOneOf<T>(
  request: FastifyRequest,
  name: string,
  table: Readonly<Record<string, T>>,
): T | undefined {
  const text = queryString(request, name);
  if (text === undefined) return undefined;
  if (!Object.hasOwn(table, text)) {
    refuse(ErrorReason.INVALID_VALUE, {
      param: name,
      message: `The parameter '${name}' must be one of: ${Object.keys(table).join(", ")}.`,
    });
  }
  return table[text];
}

/** A parameter that may be repeated, with or without brackets: `models=a&models=b` or `models[]=a`. */
export function queryList(request: FastifyRequest, name: string, most: number): string[] {
  const query = request.query as Record<string, unknown>;
  const values = [query[name], query[`${name}[]`]].flat().filter((value) => value !== undefined);
  if (values.length > most) refuse(ErrorReason.INVALID_VALUE, { param: name });
  return values.map((value) => {
    if (typeof value !== "string") refuse(ErrorReason.INVALID_TYPE, { param: name });
    if (value === "" || value.length > maxQueryValueLength) {
      refuse(ErrorReason.INVALID_VALUE, { param: name });
    }
    return value;
  });
}

/** A time in seconds since 1970. Undefined where there is none. */
export function querySeconds(request: FastifyRequest, name: string): number | undefined {
  const text = queryString(request, name);
  if (text === undefined) return undefined;
  // No bucket begins after the year 9999.
  if (!/^\d{1,11}$/.test(text)) refuse(ErrorReason.INVALID_TYPE, { param: name });
  return Number(text);
}

/** The range of time of a list, for an internal call. A list without a range has neither end. */
export function queryRange(request: FastifyRequest) {
  const [from, until] = ["start_time", "end_time"].map((name) => querySeconds(request, name));
  return {
    ...(from !== undefined && { fromTime: timestampFromMs(from * 1_000) }),
    ...(until !== undefined && { untilTime: timestampFromMs(until * 1_000) }),
  };
}

/** The range of time in a route's schema, where `what` names the time of an item. */
export function rangeProperties(what: string) {
  return {
    start_time: integer(`Seconds since 1970, UTC: only those that ${what} then or later.`, {
      minimum: 0,
    }),
    end_time: integer(`Seconds since 1970, UTC: only those that ${what} before.`, { minimum: 0 }),
  };
}
