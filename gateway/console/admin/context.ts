import { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteHandlerMethod } from "fastify";
import type { Peers } from "#common/agreements/peers.ts";
import { audited, type DoneAction, type PlannedAction } from "#common/words/operator-actions.ts";
import { ErrorReason, isRefusal, type Reason, refuse } from "#kit/base/errors.ts";
import { type JsonObject, parseSettings, parseTextBody } from "#kit/base/json.ts";
import type { Clock } from "#kit/time/clock.ts";
import type { Account } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import { Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import type { Edge } from "../../context.ts";
import { bodyLimitsBytes } from "../../limits.ts";
import { sendMade } from "../../made-files.ts";
import { queryLimit, queryString } from "../../query.ts";
import { actorOf, operatorCallOptions, requireOperator } from "../session.ts";
import { operationIdPattern, pageSizes } from "./limits.ts";

/** One request of an operator. */
export interface AdminCall {
  request: FastifyRequest;
  reply: FastifyReply;
  peers: Peers;
  clock: Clock;
  /** For internal calls, with the admin token. */
  options: ReturnType<typeof operatorCallOptions>;
  /** A segment of the path. */
  param(name: string): string;
  /** It sets something, so it is as small as those of the API that do. */
  body(): Promise<JsonObject>;
  /** One that is one long text, of at most so many bytes. */
  textBody(mostBytes: number): Promise<JsonObject>;
  /** What the query names; "" where it does not. */
  query(name: string): string;
  /** The page that is asked for. */
  page(): { pageSize: number; pageToken: string };
  /** Does something with a line in the audit log. */
  audited<T>(
    planned: PlannedAction,
    work: () => Promise<T>,
    doneOf?: (answer: T) => DoneAction,
  ): Promise<T>;
}

/** Milliseconds for an internal call of an operator. */
const quickMs = 30_000;

/** Registers a route: its answer is the JSON, or a file, and what services refuse for operators gets a status of its own. */
export function adminRoute(
  app: FastifyInstance,
  edge: Edge,
  route: {
    method: "GET" | "POST" | "PATCH";
    url: string;
    /** What makes keys or moves money asks for the secret again. */
    asksSecret?: boolean;
    timeoutMs?: number;
    handle(call: AdminCall): Promise<unknown>;
  },
): void {
  const { method, url, asksSecret = false, timeoutMs = quickMs } = route;
  const handler: RouteHandlerMethod = async (request, reply) => {
    const call = callOf(edge, request, reply, timeoutMs);
    try {
      const answer = await route.handle(call);
      if (answer instanceof Readable) return await sendMade(request, reply, answer);
      return await reply.send(plainNumbers(answer));
    } catch (error) {
      return refuseToOperator(error);
    }
  };
  app.route({ method, url, config: { asksSecret }, handler });
}

function callOf(
  edge: Edge,
  request: FastifyRequest,
  reply: FastifyReply,
  timeoutMs: number,
): AdminCall {
  const { peers, ids, clock, bodies } = edge;
  const options = operatorCallOptions(edge, request, reply, timeoutMs);
  const actor = actorOf(requireOperator(request));
  const query = (name: string) => queryString(request, name) ?? "";
  // The log is written whether or not the caller is still there.
  const { signal: _leaving, ...staying } = options;
  const auth: Pick<Peers["auth"], "beginAction" | "endAction"> = {
    beginAction: (message) => peers.auth.beginAction(message, staying),
    endAction: (message) => peers.auth.endAction(message, staying),
  };
  return {
    ...{ request, reply, peers, clock, options, query },
    param: (name) => String((request.params as Record<string, unknown>)[name] ?? ""),
    async body() {
      return parseSettings(await bodies.json(request, reply, bodyLimitsBytes.settings));
    },
    async textBody(mostBytes) {
      return parseTextBody(await bodies.json(request, reply, mostBytes));
    },
    page: () => ({
      pageSize: queryLimit(request, pageSizes),
      pageToken: query("after"),
    }),
    audited: (planned, work, doneOf) => audited({ auth, ids, actor }, planned, work, doneOf),
  };
}

/** The account that the path names. Refuses with OBJECT_NOT_FOUND. */
export async function findAccount({ peers, options, param }: AdminCall): Promise<Account> {
  const { account } = await peers.auth.getAccount({ accountId: param("accountId") }, options);
  return account ?? refuse(ErrorReason.OBJECT_NOT_FOUND);
}

/** Reasons of internal calls, as an operator's program is to see them. */
const shown: { readonly [R in Reason]?: Reason } = {
  [ErrorReason.OPERATION_CONFLICT]: ErrorReason.STATE_CONFLICT,
  [ErrorReason.OPERATION_MISMATCH]: ErrorReason.STATE_CONFLICT,
  [ErrorReason.INVALID_ARGUMENT]: ErrorReason.INVALID_VALUE,
  [ErrorReason.ACCOUNT_NOT_FOUND]: ErrorReason.OBJECT_NOT_FOUND,
  [ErrorReason.HOLD_NOT_FOUND]: ErrorReason.OBJECT_NOT_FOUND,
  [ErrorReason.ENTRY_NOT_FOUND]: ErrorReason.OBJECT_NOT_FOUND,
};

/** Fields of internal calls, as the operator's routes call them. */
const params: Readonly<Record<string, string>> = {
  page_token: "after",
  page_size: "limit",
  entry_number: "entry",
  operation_id: "operationId",
  account_id: "account",
  grace_seconds: "graceSeconds",
  settle_amount: "amount",
};

function refuseToOperator(error: unknown): never {
  if (!isRefusal(error)) throw error;
  const reason = shown[error.reason];
  if (reason === undefined) throw error;
  if (reason !== ErrorReason.INVALID_VALUE) refuse(reason, { message: error.message });
  const field = error.metadata.field ?? "";
  const param = params[field] ?? field;
  refuse(reason, { ...(param === "" ? {} : { param }) });
}

/** Integers above what a number holds exactly are strings. */
function plainNumbers(value: unknown): unknown {
  if (typeof value === "bigint") {
    return Number.isSafeInteger(Number(value)) ? Number(value) : value.toString();
  }
  if (Array.isArray(value)) return value.map(plainNumbers);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, plainNumbers(one)]));
}

/** A page of a list. */
export function listOf(data: readonly unknown[], nextPageToken = "") {
  return { object: "list", data, next: nextPageToken || null };
}

/** The unit that a body names. */
export function readUnit(body: JsonObject): Unit {
  if (body.unit === "usd_micros") return Unit.USD_MICROS;
  if (body.unit === "credits") return Unit.CREDITS;
  const message = "The parameter 'unit' must be 'usd_micros' or 'credits'.";
  return refuse(ErrorReason.INVALID_VALUE, { param: "unit", message });
}

/** The operation id of a body: the same one acts once. */
export function readOperationId(body: JsonObject): string {
  const id = body.operationId;
  if (id === undefined) refuse(ErrorReason.MISSING_REQUIRED_PARAMETER, { param: "operationId" });
  if (typeof id === "string" && operationIdPattern.test(id)) return id;
  return refuse(ErrorReason.INVALID_VALUE, { param: "operationId" });
}
