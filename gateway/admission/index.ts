import type { Client } from "@connectrpc/connect";
import type { Clock } from "#kit/clock.ts";
import { ErrorReason, isRefusal, RefusalError, refuse } from "#kit/errors.ts";
import type { Logger } from "#kit/logger.ts";
import type { Metrics } from "#kit/metrics.ts";
import type { RateVerdict } from "#kit/rate-buckets.ts";
import type { AuthService } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { Admission, Admitted, Deferral } from "../context.ts";
import { createAdmissionEvents } from "./events.ts";
import { type AdmittedKey, createKeyCache } from "./key-cache.ts";
import { type AdmissionLimits, admissionLimits } from "./limits.ts";
import { rateHeaders } from "./rate-headers.ts";
import { createOwnRates, createSharedRates } from "./rate-limiter.ts";

export { type AdmissionLimits, admissionLimits } from "./limits.ts";

/** What admission needs. */
export interface AdmissionDeps {
  auth: Client<typeof AuthService>;
  clock: Clock;
  log: Logger;
  metrics: Metrics;
  /** Are there gateways in other processes, with which the keys' rates are shared? Default false. */
  sharesRates?: boolean;
  /** Default {@link admissionLimits}. */
  limits?: AdmissionLimits;
}

/** Admission of this process, with the watch that keeps its keys fresh. */
export interface LiveAdmission extends Admission, AsyncDisposable {
  admit(
    authorization: string | undefined,
    scope: Scope,
    deferral: Deferral,
    signal?: AbortSignal,
  ): Promise<Admitted>;
  /** Resolves when auth was heard for the first time. */
  readonly ready: Promise<void>;
  /** Undefined when cached keys count; else one line that says why not. */
  notReady(): string | undefined;
}

/** "Bearer" without case, and a secret of the only form there is: what has another one is nobody's. */
const bearer = /^Bearer +([A-Za-z0-9_-]{20,200})$/i;
const scopeNames = new Map<number, string>(
  Object.entries(Scope).map(([name, scope]) => [scope, name.toLowerCase()]),
);

/** Begins to watch auth, and admits from the first request on. */
export function createAdmission(deps: AdmissionDeps): LiveAdmission {
  const limits = deps.limits ?? admissionLimits;
  const events = createAdmissionEvents(deps);
  const keys = createKeyCache({ ...deps, limits, events });
  const rates = (deps.sharesRates ? createSharedRates : createOwnRates)({
    ...deps,
    limits,
    events,
  });

  const keyOf = async (authorization: string | undefined, signal?: AbortSignal) => {
    const secret = bearer.exec(authorization ?? "")?.[1];
    if (secret === undefined) refuse(ErrorReason.INVALID_API_KEY);
    const key = keys.admit(secret, signal);
    return key instanceof Promise ? await key : key;
  };
  return {
    async admit(authorization, scope, deferral, signal) {
      try {
        const key = await keyOf(authorization, signal);
        // A request outside the key's scopes counts too: refusing it is work.
        const taken = rates.take(key);
        const verdict = taken instanceof Promise ? await taken : taken;
        const headers = rateHeaders(verdict);
        const overRate = rateRefusal(verdict, headers);
        if (overRate && deferral !== "scope and rate") throw overRate;
        const outside = scopeRefusal(key, scope, headers);
        if (outside && deferral === "nothing") throw outside;
        const refusal = overRate ?? outside;
        if (refusal) events.refused(refusal.reason);
        return admitted(key, headers, refusal);
      } catch (error) {
        if (isRefusal(error)) events.refused(error.reason);
        throw error;
      }
    },
    ready: keys.ready,
    notReady: keys.notReady,
    [Symbol.asyncDispose]: () => keys[Symbol.asyncDispose](),
  };
}

function scopeRefusal(
  key: AdmittedKey,
  scope: Scope,
  headers: Record<string, string>,
): RefusalError | undefined {
  if (scope === Scope.UNSPECIFIED || key.scopes.has(scope)) return undefined;
  const name = scopeNames.get(scope) ?? String(scope);
  return new RefusalError(ErrorReason.PERMISSION_DENIED, {
    message: `The API key lacks the scope '${name}'.`,
    metadata: { ...headers, scope: name },
  });
}

function rateRefusal(
  verdict: RateVerdict,
  headers: Record<string, string>,
): RefusalError | undefined {
  if (verdict.ok) return undefined;
  return new RefusalError(ErrorReason.RATE_LIMIT_EXCEEDED, {
    metadata: { ...headers, retry_after_ms: String(verdict.retryAfterMs) },
  });
}

function admitted(
  key: AdmittedKey,
  headers: Record<string, string>,
  refusal: RefusalError | undefined,
): Admitted {
  return {
    principal: { accountId: key.accountId, keyId: key.keyId },
    admission: {
      allowedModels: [...key.allowedModels],
      ...(key.monthlyUsdMicrosLimit === undefined
        ? {}
        : { monthlyUsdMicrosLimit: key.monthlyUsdMicrosLimit }),
      ...(refusal ? { refuseWith: refusal.reason, refusalMessage: refusal.message } : {}),
    },
    headers,
    ...(refusal ? { refusal } : {}),
  };
}
