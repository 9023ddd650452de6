// Registers a route of the operator, and gives it what such routes need: the body, the page, internal calls with the admin token,
// the audit log.

import { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteHandlerMethod } from "fastify";
import type { Peers } from "#common/agreements/peers.ts";
import { audited, type DoneAction, type PlannedAction } from "#common/words/operator-actions.ts";
import { ErrorReason, isRefusal, type Reason, refuse } from "#kit/base/errors.ts";
import type { JsonObject } from "#kit/base/json.ts";
import { parseSettings, parseTextBody } from "#kit/base/settings-body.ts";
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
  /** The operator, as the audit log names them. */
  actor: string;
  /** Options of internal calls, with the admin token. */
  options: ReturnType<typeof operatorCallOptions>;
  /** A segment of the path. */
  param(name: string): string;
  /** The body of a request that changes a setting. It has the small bound that such requests have in the API. */
  body(): Promise<JsonObject>;
  /** A body that consists of one long text, of at most this many bytes. */
  textBody(mostBytes: number): Promise<JsonObject>;
  /** A parameter of the query, or "" where the query lacks it. */
  query(name: string): string;
  /** The page that the caller asks for. */
  page(): { pageSize: number; pageToken: string };
  /** Runs a change and writes a line of the audit log about it. */
  audited<T>(
    planned: PlannedAction,
    work: () => Promise<T>,
    doneOf?: (answer: T) => DoneAction,
  ): Promise<T>;
}

/** Milliseconds for an internal call of an operator. */
const quickMs = 30_000;

/** Registers a route. It answers with JSON or a file. A refusal by a service gets the status that operators' programs expect. */
export function adminRoute(
  app: FastifyInstance,
  edge: Edge,
  route: {
    method: "GET" | "POST" | "PATCH";
    url: string;
    /** A route that makes keys or moves money asks for the secret again. */
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
      if (answer instanceof Readable) return await sendMade(edge, request, reply, answer);
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
  // The log is written even if the caller has gone.
  const { signal: _leaving, ...staying } = options;
  const auth: Pick<Peers["auth"], "beginAction" | "endAction"> = {
    beginAction: (message) => peers.auth.beginAction(message, staying),
    endAction: (message) => peers.auth.endAction(message, staying),
  };
  return {
    ...{ request, reply, peers, clock, actor, options, query },
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

/** The account of the path. Refuses with OBJECT_NOT_FOUND. */
export async function findAccount({ peers, options, param }: AdminCall): Promise<Account> {
  const { account } = await peers.auth.getAccount({ accountId: param("accountId") }, options);
  return account ?? refuse(ErrorReason.OBJECT_NOT_FOUND);
}

/** Reasons of internal calls, and the reasons that an operator's program gets instead. */
const shown: { readonly [R in Reason]?: Reason } = {
  [ErrorReason.OPERATION_CONFLICT]: ErrorReason.STATE_CONFLICT,
  [ErrorReason.OPERATION_MISMATCH]: ErrorReason.STATE_CONFLICT,
  // Less is free than is to be taken back.
  [ErrorReason.INSUFFICIENT_BALANCE]: ErrorReason.STATE_CONFLICT,
  [ErrorReason.INSUFFICIENT_CREDITS]: ErrorReason.STATE_CONFLICT,
  [ErrorReason.INVALID_ARGUMENT]: ErrorReason.INVALID_VALUE,
  [ErrorReason.ACCOUNT_NOT_FOUND]: ErrorReason.OBJECT_NOT_FOUND,
  [ErrorReason.HOLD_NOT_FOUND]: ErrorReason.OBJECT_NOT_FOUND,
  [ErrorReason.ENTRY_NOT_FOUND]: ErrorReason.OBJECT_NOT_FOUND,
};

/** Fields of internal calls, and their names in the operator's routes. */
const params: Readonly<Record<string, string>> = {
  page_token: "after",
  page_size: "limit",
  entry_number: "entry",
  operation_id: "operationId",
  account_id: "account",
  grace_seconds: "graceSeconds",
  settle_amount: "amount",
  number: "version",
  expected_number: "expected",
  totp_secret: "totpSecret",
  start_seconds: "start_time",
  days: "end_time",
};

/** Refuses with the reason that an operator's program gets for a refusal of a service. */
export function refuseToOperator(error: unknown): never {
  if (!isRefusal(error)) throw error;
  const reason = shown[error.reason];
  if (reason === undefined) throw error;
  if (reason !== ErrorReason.INVALID_VALUE) refuse(reason, { message: error.message });
  const field = error.metadata.field ?? "";
  const param = params[field] ?? field;
  refuse(reason, { ...(param === "" ? {} : { param }) });
}

/** An integer that a number cannot hold exactly becomes a string. */
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

/** The unit in a body. */
export function readUnit(body: JsonObject): Unit {
  if (body.unit === "usd_micros") return Unit.USD_MICROS;
  if (body.unit === "credits") return Unit.CREDITS;
  const message = "The parameter 'unit' must be 'usd_micros' or 'credits'.";
  return refuse(ErrorReason.INVALID_VALUE, { param: "unit", message });
}

/** The operation id of a body. Two requests with the same id act once. */
export function readOperationId(body: JsonObject): string {
  const id = body.operationId;
  if (id === undefined) refuse(ErrorReason.MISSING_REQUIRED_PARAMETER, { param: "operationId" });
  if (typeof id === "string" && operationIdPattern.test(id)) return id;
  return refuse(ErrorReason.INVALID_VALUE, { param: "operationId" });
}
