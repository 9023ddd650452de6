// Decides whether a request is let in: its key, its scope, its rate. `plugins/authentication.ts` calls it for each request. The
// parts are in files of their own.

import type { Client } from "@connectrpc/connect";
import { scopeName } from "#common/words/scopes.ts";
import { ErrorReason, isRefusal, RefusalError, refuse } from "#kit/base/errors.ts";
import type { Logger } from "#kit/base/logger.ts";
import type { Metrics } from "#kit/base/metrics.ts";
import { createRateBuckets, type RateVerdict } from "#kit/share/rate-buckets.ts";
import type { Clock } from "#kit/time/clock.ts";
import type { AuthService } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import { KeyLimitReset, Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { Admission, Admitted, Deferral } from "../context.ts";
import { createAdmissionEvents } from "./events.ts";
import { type AdmittedKey, createKeyCache } from "./key-cache.ts";
import { createKeyUses } from "./key-uses.ts";
import { type AdmissionLimits, admissionLimits } from "./limits.ts";
import { createOwnRates, createSharedRates, rateHeaders } from "./rate-limiter.ts";

export { type AdmissionLimits, admissionLimits } from "./limits.ts";

/** The parts that admission needs. */
interface AdmissionDeps {
  auth: Client<typeof AuthService>;
  clock: Clock;
  log: Logger;
  metrics: Metrics;
  /** Are there gateways in other processes that share the keys' rates? Default: false. */
  sharesRates?: boolean;
  /** Default: {@link admissionLimits}. */
  limits?: AdmissionLimits;
}

/** Admission of this process, with the watch that keeps its keys up to date. */
export interface LiveAdmission extends Admission, AsyncDisposable {
  /** Resolves when auth sent its first message. */
  readonly ready: Promise<void>;
  /** Undefined when cached keys may be used. Otherwise one line with the reason. */
  notReady(): string | undefined;
}

/** Counts of tokens that a key may ask for, for each of its requests. */
const countsPerRequest = 10;

/** "Bearer" in any case, and a secret. All keys have a secret of this form. */
const bearer = /^Bearer +([A-Za-z0-9_-]{20,200})$/i;

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
  /**
   * Look-ups of recorded answers above the rate: as many again as the rate, of a key and of its account, in the same minute. Each reads
   * and fingerprints a body, which would otherwise have no bound. It leaves room for a client that repeats each of its requests once,
   * after a 429 or a lost answer. Each gateway counts them alone. They admit no request, and asking auth would be work for refused
   * requests.
   */
  const lookUps = createRateBuckets({ ...deps, maxBuckets: limits.maxBuckets });
  const mayLookUp = (key: AdmittedKey) =>
    lookUps.take({
      ...key,
      requestsPerMinute: Math.max(key.requestsPerMinute, limits.fewestLookUps),
    }).ok;

  /** Counts of tokens, in each gateway alone. Clients send some tens at once. */
  const counts = createRateBuckets({ ...deps, maxBuckets: limits.maxBuckets });
  const takeCount = (key: AdmittedKey) =>
    counts.take({
      ...key,
      requestsPerMinute: key.requestsPerMinute * countsPerRequest,
      accountRequestsPerMinute: key.accountRequestsPerMinute * countsPerRequest,
    });

  const uses = createKeyUses(deps);

  const judge = (key: AdmittedKey, verdict: RateVerdict, scope: Scope, deferral: Deferral) => {
    const headers = rateHeaders(verdict);
    const isInScope = scope === Scope.UNSPECIFIED || key.scopes.has(scope);
    if (verdict.ok && isInScope) return admitted(key, headers);
    const refusal = verdict.ok ? scopeRefusal(scope, headers) : rateRefusal(verdict, headers);
    events.refused(refusal.reason);
    const isDeferred = verdict.ok
      ? deferral !== "nothing"
      : deferral === "scope and rate" && mayLookUp(key);
    if (!isDeferred) throw refusal;
    return admitted(key, headers, refusal);
  };
  const admitKey: Admission["admitKey"] = (key, scope, deferral, rate = "requests") => {
    uses.note(key.keyId);
    // A request outside the key's scopes counts too, because refusing it is work.
    const verdict = rate === "counts" ? takeCount(key) : rates.take(key);
    return verdict instanceof Promise
      ? verdict.then((told) => judge(key, told, scope, deferral))
      : judge(key, verdict, scope, deferral);
  };
  const noKey = (error: unknown): never => {
    if (isRefusal(error)) events.refused(error.reason);
    throw error;
  };
  const keyOf = (authorization: string | undefined) => {
    const secret = bearer.exec(authorization ?? "")?.[1];
    return keys.admit(secret ?? refuse(ErrorReason.INVALID_API_KEY));
  };
  return {
    admit(authorization, scope, deferral, rate) {
      let key: ReturnType<typeof keys.admit>;
      try {
        key = keyOf(authorization);
      } catch (error) {
        return noKey(error);
      }
      return key instanceof Promise
        ? key.then((found) => admitKey(found, scope, deferral, rate), noKey)
        : admitKey(key, scope, deferral, rate);
    },
    admitKey,
    async check(authorization) {
      await keyOf(authorization);
    },
    onKeysChanged: keys.onChanged,
    ready: keys.ready,
    notReady: keys.notReady,
    async [Symbol.asyncDispose]() {
      await uses[Symbol.asyncDispose]();
      await keys[Symbol.asyncDispose]();
    },
  };
}

function scopeRefusal(scope: Scope, headers: Record<string, string>): RefusalError {
  const name = scopeName(scope);
  return new RefusalError(ErrorReason.PERMISSION_DENIED, {
    message: `The API key lacks the scope '${name}'.`,
    metadata: { ...headers, scope: name },
  });
}

function rateRefusal(verdict: RateVerdict, headers: Record<string, string>): RefusalError {
  return new RefusalError(ErrorReason.RATE_LIMIT_EXCEEDED, {
    metadata: { ...headers, retry_after_ms: String(verdict.retryAfterMs) },
  });
}

/** Monthly where the key states no period, which every peer knows. */
function resetOf({ limitReset }: AdmittedKey) {
  return limitReset === KeyLimitReset.MONTHLY ? {} : { limitReset };
}

function admitted(
  key: AdmittedKey,
  headers: Record<string, string>,
  refusal?: RefusalError,
): Admitted {
  return {
    principal: { accountId: key.accountId, keyId: key.keyId },
    admission: {
      allowedModels: [...key.allowedModels],
      ...(key.webhookUrl === "" ? {} : { webhookUrl: key.webhookUrl }),
      ...(key.monthlyUsdMicrosLimit === undefined
        ? {}
        : { monthlyUsdMicrosLimit: key.monthlyUsdMicrosLimit, ...resetOf(key) }),
      ...(refusal ? { refuseWith: refusal.reason, refusalMessage: refusal.message } : {}),
    },
    headers,
    scopes: key.scopes,
    ...(key.accountSuspended ? { accountSuspended: true } : {}),
    ...(refusal ? { refusal } : {}),
  };
}
