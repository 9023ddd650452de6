// Makes and sends the request of one step of a declaration: create, poll, result or cancel.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { fill } from "#kit/template/template.ts";
import type { HttpReply } from "#kit/upstream/client.ts";
import type { Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { isTooDeep } from "../call.ts";
import type { DriverContext } from "../media/context.ts";
import { type Call, exchangeJson, type JsonReply } from "../media/exchange.ts";
import { failed } from "../media/faults.ts";
import { generateLimits } from "../media/limits.ts";
import { textAt } from "./answers.ts";
import { authHeaders } from "./auth.ts";
import type { Declaration, Step } from "./declaration.ts";
import { declaredHeaders } from "./headers.ts";
import { PathError, type PathValues, routeOf, urlOfStep } from "./paths.ts";

/** An upstream, and the values that its paths may name: `model`, `job`, and what its answers gave. */
export interface Declared {
  upstream: Upstream;
  declaration: Declaration;
  values: PathValues;
  signal: AbortSignal;
}

/** The body that a step declares, with the values of its task. That of the beginning request is filled elsewhere, once. */
export function bodyOfStep(
  { body }: { body?: JsonObject | undefined },
  { values }: Pick<Declared, "values">,
): JsonObject | undefined {
  const filled = body && fill(body, values);
  return isJsonObject(filled) ? filled : undefined;
}

/** The request of a step. `body`: what it sends. */
export async function callOfStep(
  context: DriverContext,
  { upstream, declaration, values, signal }: Declared,
  step: Step,
  body?: JsonObject,
): Promise<Call> {
  const { method, path } = routeOf(step);
  return {
    upstream,
    method,
    url: urlOf(path, values, { baseUrl: upstream.baseUrl, origins: declaration.origins }),
    key: "none",
    headers: {
      ...declaredHeaders(declaration, step),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...(await authHeaders(context, upstream, declaration)),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal,
  };
}

/** Throws a `failed` GenerationError where an answer's values make no URL of the upstream's. */
function urlOf(...made: Parameters<typeof urlOfStep>): string {
  try {
    return urlOfStep(...made);
  } catch (error) {
    throw error instanceof PathError ? failed(error.message) : error;
  }
}

/** Asks once. A success without a body is an empty object. Throws the errors of `exchangeJson`. */
export function ask(context: DriverContext, call: Call): Promise<JsonReply> {
  const maxBytes = generateLimits.answerBytes;
  return exchangeJson(context, call, maxBytes, async (reply: HttpReply) => {
    const bytes = await reply.body.whole(maxBytes);
    return bytes.length === 0 ? {} : exactObjectIn(bytes);
  });
}

/** The object in an answer. An integer that a number cannot hold stays as its digits, because ids of some upstreams have 64 bits. */
function exactObjectIn(bytes: Buffer): JsonObject | undefined {
  if (isTooDeep(bytes)) return undefined;
  try {
    const value: unknown = JSON.parse(bytes.toString(), exactly);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function exactly(_: string, value: JsonValue, context?: { source?: string }): JsonValue {
  if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
  const source = context?.source ?? "";
  return /^-?\d+$/.test(source) ? source : value;
}

/** The values that an answer gives by name, as texts. Throws a `failed` GenerationError where a name has no usable value. */
export function takenOf(
  take: Readonly<Record<string, string>> | undefined,
  answer: JsonObject,
): PathValues {
  return Object.fromEntries(
    Object.entries(take ?? {}).map(([name, place]) => {
      const value = textAt(place, answer);
      if (value === undefined || value.length > takenCharacters || !/^[^\p{C}]+$/u.test(value)) {
        throw failed("the upstream's answer names no task");
      }
      return [name, value];
    }),
  );
}

/** Characters of an id or a URL that an answer gives. A signed URL of a look has some 200. */
const takenCharacters = generateLimits.resumeIdChars;

/** The values that an earlier attempt stored as the task's id. */
export function storedValues(resumeId: string): PathValues {
  const stored: unknown = JSON.parse(resumeId);
  if (!isJsonObject(stored)) throw failed("the stored task is none");
  return Object.fromEntries(Object.entries(stored).map(([name, value]) => [name, String(value)]));
}
