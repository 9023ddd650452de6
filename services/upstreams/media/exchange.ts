// Sends one request of a driver of media, and turns every other end than a success into an error of `faults.ts`.

import { isJsonObject, type JsonObject } from "#kit/base/json.ts";
import type { HttpReply } from "#kit/upstream/client.ts";
import { UpstreamError } from "#kit/upstream/errors.ts";
import type { Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import {
  callUpstream,
  errorIn,
  isEmptyAccount,
  isPolicyCode,
  knownCode,
  objectIn,
  readErrorBody,
  type UpstreamCall,
} from "../call.ts";
import type { Capabilities } from "../capabilities.ts";
import { capabilitiesOf } from "../protocols.ts";
import { retryAfterOf } from "../retry-after.ts";
import type { DriverContext } from "./context.ts";
import { keyMissing } from "./events.ts";
import { KeyMissingError, StatusError, UnconnectedError, UnreadableError } from "./faults.ts";

/** One request to an upstream. */
export interface Call extends Omit<UpstreamCall, "isStream" | "onSent"> {
  /** Default: `application/json`. */
  accept?: string;
  /** The error that the body of a refusal means. Undefined: its status decides, which `error` has. */
  refusal?:
    | ((status: number, body: JsonObject, error: StatusError) => Error | undefined)
    | undefined;
}

/** A success, and its body as an object. */
export interface JsonReply {
  status: number;
  body: JsonObject;
  /** The wait that `Retry-After` asks for, in milliseconds. */
  retryAfterMs: number | undefined;
}

/**
 * Sends once and resolves with the head of a 2xx or 3xx answer, its body to be read. Throws {@link StatusError}, `UpstreamError`,
 * {@link KeyMissingError}, or the signal's reason. Throws {@link UnconnectedError} where not even a connection was made.
 */
export async function exchange(
  context: DriverContext,
  { accept = "application/json", headers, refusal, ...call }: Call,
): Promise<HttpReply> {
  const abilities = capabilitiesOf(call.upstream.protocol);
  const key = call.key ?? abilities?.key;
  let isSent = false;
  const onSent = () => {
    isSent = true;
  };
  try {
    const reply = await callUpstream(context, {
      ...call,
      key,
      headers: { accept, ...headers },
      onSent,
    });
    if (reply.status < 400) return reply;
    throw await refusalOf(reply, context.clock.now(), { ...abilities, refusal });
  } catch (error) {
    if (!(error instanceof UpstreamError)) throw error;
    if (error.kind === "misconfigured") {
      keyMissing(context, call.upstream);
      throw new KeyMissingError();
    }
    throw isSent ? error : new UnconnectedError(error.message, { cause: error });
  }
}

/** Sends once and reads the answer as a JSON object. Throws the errors of {@link exchange}, or {@link UnreadableError}. */
export async function exchangeJson(
  context: DriverContext,
  call: Call,
  maxBytes: number,
  read = async (reply: HttpReply) => objectIn(await reply.body.whole(maxBytes)),
): Promise<JsonReply> {
  const reply = await exchange(context, call);
  if (reply.status >= 300) {
    reply.body.close();
    throw new StatusError(reply.status);
  }
  const body = await read(reply).catch((error) => {
    reply.body.close();
    throw error;
  });
  if (!body) throw new UnreadableError("the answer is no JSON object");
  const retryAfterMs = retryAfterOf(reply.headers, context.clock.now());
  return { status: reply.status, body, retryAfterMs };
}

/** Headers and body of a JSON request. */
export function jsonBody(value: JsonObject): Pick<Call, "headers" | "body"> {
  return { headers: { "content-type": "application/json" }, body: JSON.stringify(value) };
}

/** The URL of a path under the upstream's base. */
export function urlOf(upstream: Upstream, path: string): string {
  return `${upstream.baseUrl}${path}`;
}

async function refusalOf(
  reply: HttpReply,
  nowMs: number,
  {
    emptyAccount = [],
    tooEarly,
    refusal,
  }: Pick<Capabilities, "emptyAccount" | "tooEarly"> & Pick<Call, "refusal">,
): Promise<Error> {
  const { status } = reply;
  const body = await readErrorBody(reply);
  const error = isJsonObject(body.error) ? errorIn(body) : (detailIn(body) ?? body);
  const code = knownCode([error.code, error.status, error.type]);
  const retryAfterMs = retryAfterOf(reply.headers, nowMs);
  const words = [error.code, error.type, error.status];
  const found = new StatusError(status, {
    ...(code ? { code } : {}),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    isCharged: typeof error.costUsdMicros === "number" && error.costUsdMicros > 0,
    isAccountEmpty: emptyAccount.includes(status) || isEmptyAccount(status, words),
    isTooEarly: tooEarly !== undefined && body.detail === tooEarly,
  });
  return refusal?.(status, body, found) ?? found;
}

/** The error in `detail`, or the first of a list of them, as FastAPI servers answer. Of a list, a refusal for content comes first. */
function detailIn({ detail }: JsonObject): JsonObject | undefined {
  if (isJsonObject(detail)) return detail;
  const errors = Array.isArray(detail) ? detail.filter(isJsonObject) : [];
  return errors.find(({ type }) => isPolicyCode(type)) ?? errors[0];
}
