// Rules that each request to the API passes first: its key is admitted, its account is active, its headers are sent once.
// Admission decides about the key.

import type { FastifyReply, FastifyRequest } from "fastify";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { noteValidKey } from "#kit/edge/connection-bounds.ts";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { Admitted, Deferral, Edge, RateKind } from "../context.ts";
import { takesApiKey } from "../messages-errors.ts";
import { idempotencyKeyOf, isRepeated } from "../request.ts";
import type { Rule } from "./rules.ts";
import type { UnknownRoutes } from "./unknown-routes.ts";

/** The methods that a suspended account may still use. */
const readingMethods: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);

/**
 * Admits callers before any other step, even on unknown paths, so that a caller without a key learns nothing. `admit` returns the
 * caller of a request, and refuses an unknown one.
 */
export function admissionRules(admit: Admit, unknown: UnknownRoutes): Rule[] {
  return [authentication(admit), activeAccount, sentOnce, unknown.rule];
}

function authentication(admit: Admit): Rule {
  return (request, reply) => {
    const { scope = Scope.UNSPECIFIED, idempotent = false, rate } = request.routeOptions.config;
    const deferral = deferralOf(idempotent, idempotencyKeyOf(request) !== undefined);
    const admitted = admit(request, scope, deferral, rate);
    if (admitted instanceof Promise) {
      return admitted.then((caller) => noteCaller(caller, request, reply));
    }
    return noteCaller(admitted, request, reply);
  };
}

function noteCaller(caller: Admitted, request: FastifyRequest, reply: FastifyReply): undefined {
  request.caller = caller;
  noteValidKey(request.raw.socket, caller.principal.accountId);
  reply.headers(caller.headers);
}

function activeAccount({ caller, method }: FastifyRequest): undefined {
  if (caller?.accountSuspended && !readingMethods.has(method)) {
    refuse(ErrorReason.ACCOUNT_SUSPENDED);
  }
}

function sentOnce({ raw }: FastifyRequest): undefined {
  if (isRepeated(raw, "content-type")) {
    refuse(ErrorReason.UNSUPPORTED_MEDIA_TYPE, { message: "Send the header Content-Type once." });
  }
  if (raw.headers["idempotency-key"] !== undefined && isRepeated(raw, "idempotency-key")) {
    refuse(ErrorReason.INVALID_IDEMPOTENCY_KEY, {
      param: "Idempotency-Key",
      message: "Send the header Idempotency-Key at most once.",
    });
  }
}

/** Returns the caller of a request. */
export type Admit = (
  request: FastifyRequest,
  scope: Scope,
  deferral: Deferral,
  rate?: RateKind,
) => Admitted | Promise<Admitted>;

/** By the Authorization header, or that of Anthropic's clients where it is taken. */
export function byKey({ admission }: Pick<Edge, "admission">): Admit {
  return (request, scope, deferral, rate) => {
    if (isRepeated(request.raw, "authorization")) refuse(ErrorReason.INVALID_API_KEY);
    const { authorization, "x-api-key": apiKey } = request.headers;
    const named = apiKey === undefined ? authorization : authorizationOf(request);
    return admission.admit(named, scope, deferral, rate);
  };
}

/** The scheme of a key, with large or small letters. */
const scheme = /^bearer +/i;

/** Some clients send both headers. Two different keys may be of two accounts. */
function authorizationOf(request: FastifyRequest): string | undefined {
  const { authorization, "x-api-key": apiKey } = request.headers;
  if (!takesApiKey(request)) return authorization;
  const named = `Bearer ${apiKey}`;
  const isSame = (authorization ?? named).replace(scheme, "Bearer ") === named;
  if (!isSame || isRepeated(request.raw, "x-api-key")) refuse(ErrorReason.INVALID_API_KEY);
  return named;
}

/** A service that looks up idempotency keys reads the body first. So it can refuse the scope after checking the syntax. */
function deferralOf(idempotent: boolean, hasIdempotencyKey: boolean): Deferral {
  if (!idempotent) return "nothing";
  return hasIdempotencyKey ? "scope and rate" : "scope";
}
