// Finds the key of a secret, from this gateway's memory where auth keeps it up to date, else by asking auth.

import { hash } from "node:crypto";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import { effectiveScopes } from "#common/words/scopes.ts";
import { createSharedLooks } from "#kit/base/batching.ts";
import { createBoundedMap } from "#kit/base/bounded-map.ts";
import { ErrorReason, isRefusal, refuse } from "#kit/base/errors.ts";
import type { Clock } from "#kit/time/clock.ts";
import type { AuthService, LookUpKeyResponse } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import type { KeyLimitReset, Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { AdmissionEvents } from "./events.ts";
import { type KeyWatch, watchKeys } from "./key-watch.ts";
import type { AdmissionLimits } from "./limits.ts";

/** The edge's facts about a key. */
export interface AdmittedKey {
  readonly accountId: string;
  readonly keyId: string;
  /** Route families that it may use. All of them where auth names none. */
  readonly scopes: ReadonlySet<Scope>;
  /** Model ids that it may use. Empty: all. */
  readonly allowedModels: readonly string[];
  readonly monthlyUsdMicrosLimit: bigint | undefined;
  readonly limitReset: KeyLimitReset;
  /** The address for the ends of its jobs. Empty: none. */
  readonly webhookUrl: string;
  readonly requestsPerMinute: number;
  readonly accountRequestsPerMinute: number;
  /** Is its account suspended, so that it may only read? */
  readonly accountSuspended: boolean;
}

/** The keys of the secrets that callers send. A key that was seen before needs no call. */
export interface KeyCache extends AsyncDisposable {
  /**
   * The key of a secret. It comes at once where it is cached and auth sent a message within 5 s. Otherwise it takes a call, which is
   * shared with all requests of the same secret that come before it begins. A secret that is unknown, deleted, expired or past its
   * grace is refused with INVALID_API_KEY. Where auth does not answer a look-up within 2 s, the refusal is SERVICE_UNAVAILABLE.
   */
  admit(secret: string): AdmittedKey | Promise<AdmittedKey>;
  /** Calls `listen` with the ids of keys that have changed. Undefined: any key may have. */
  onChanged(listen: (keyIds: readonly string[] | undefined) => void): void;
  /** Resolves when auth sent its first message. From then on keys are cached. */
  readonly ready: Promise<void>;
  /** Undefined when cached keys may be used. Otherwise one line with the reason. */
  notReady(): string | undefined;
}

interface Entry {
  readonly key: AdmittedKey;
  /** Expiry of the key, or end of its former secret's grace. Infinity: none. */
  readonly validUntilMs: number;
}

/** Makes an empty cache and begins to watch for changes. */
export function createKeyCache(deps: {
  auth: Client<typeof AuthService>;
  clock: Clock;
  limits: AdmissionLimits;
  events: AdmissionEvents;
}): KeyCache {
  const { clock, limits, events } = deps;
  const life = new AbortController();
  const cached = createCachedKeys(limits.maxCachedKeys, events);
  const invalidUntilMs = createBoundedMap<number>(limits.maxInvalidSecrets);
  const lookUps = createSharedLooks<Entry>();
  const listeners: ((keyIds: readonly string[] | undefined) => void)[] = [];
  const watch = watchKeys({
    ...deps,
    listener: {
      forget() {
        cached.clear();
        for (const listen of listeners) listen(undefined);
      },
      changed(keyIds) {
        cached.dropKeys(keyIds);
        if (keyIds.length > 0) for (const listen of listeners) listen(keyIds);
      },
    },
  });

  const ask = async (digest: string): Promise<Entry> => {
    try {
      const entry = await lookUp(deps, watch, digest, life.signal, cached.put);
      events.lookedUp("found");
      return entry;
    } catch (error) {
      const isInvalid = isRefusal(error, ErrorReason.INVALID_API_KEY);
      events.lookedUp(isInvalid ? "invalid" : "failed");
      if (isInvalid) invalidUntilMs.set(digest, clock.steady() + limits.invalidForMs);
      if (isRefusal(error)) throw error;
      // This process stops. The caller is asked to try again, and does not count as having left.
      return refuse(ErrorReason.SERVICE_UNAVAILABLE, { metadata: retrySoon, cause: error });
    }
  };
  const shared = (digest: string): Promise<Entry> => {
    if (!lookUps.has(digest) && lookUps.size >= limits.maxLookUps) {
      refuse(ErrorReason.SERVICE_UNAVAILABLE, { metadata: retrySoon });
    }
    return lookUps.add(digest, async () => {
      // The look-up before this one may have cached the key.
      const entry = cached.get(digest);
      return entry && watch.inForce() ? entry : ask(digest);
    });
  };
  const use = (entry: Entry): AdmittedKey =>
    clock.now() < entry.validUntilMs ? entry.key : refuse(ErrorReason.INVALID_API_KEY);

  return {
    admit(secret) {
      const digest = hash("sha256", secret, "base64url");
      const entry = cached.get(digest);
      // While auth sends no messages, cached keys are not used. An answer of auth to a question is.
      if (entry && watch.inForce()) return use(entry);
      const untilMs = invalidUntilMs.get(digest);
      if (untilMs !== undefined && clock.steady() < untilMs) refuse(ErrorReason.INVALID_API_KEY);
      return shared(digest).then(use);
    },
    onChanged: (listen) => void listeners.push(listen),
    ready: watch.heard,
    notReady() {
      if (watch.inForce()) return undefined;
      return watch.epoch() === 0 ? "auth was not heard yet" : "auth was not heard of for 5 s";
    },
    async [Symbol.asyncDispose]() {
      life.abort();
      await watch[Symbol.asyncDispose]();
    },
  };
}

const retrySoon = { retry_after_ms: "1000" };
/** A look-up that was overtaken by a change is made once more. Then its answer serves one request and is not kept. */
const maxAsks = 2;

async function lookUp(
  deps: { auth: Client<typeof AuthService>; limits: AdmissionLimits },
  watch: KeyWatch,
  digest: string,
  signal: AbortSignal,
  put: (digest: string, entry: Entry) => void,
): Promise<Entry> {
  for (let asks = 1; ; asks += 1) {
    const epoch = watch.epoch();
    const answer = await deps.auth.lookUpKey(
      { secretSha256: Buffer.from(digest, "base64url") },
      { signal, timeoutMs: deps.limits.lookUpTimeoutMs },
    );
    const entry = entryOf(answer);
    // An answer that is older than the watch's last change may hold a key that was deleted since. That change will not come again.
    // While auth sends no messages, changes are not known at all.
    const isCurrent = answer.revision >= watch.revision();
    if (isCurrent && epoch === watch.epoch() && watch.inForce()) put(digest, entry);
    if (isCurrent || asks === maxAsks) return entry;
  }
}

/** The edge's facts about a key, from auth's answer. */
export function toAdmittedKey(
  answer: Pick<LookUpKeyResponse, "key" | "accountRequestsPerMinute" | "accountSuspended">,
): AdmittedKey {
  const key = answer.key ?? refuse(ErrorReason.INTERNAL_ERROR);
  return {
    accountId: key.accountId,
    keyId: key.keyId,
    scopes: effectiveScopes(key.scopes),
    allowedModels: key.allowedModels,
    monthlyUsdMicrosLimit: key.monthlyUsdMicrosLimit,
    limitReset: key.limitReset,
    webhookUrl: key.webhookUrl,
    requestsPerMinute: key.requestsPerMinute,
    accountRequestsPerMinute: answer.accountRequestsPerMinute,
    accountSuspended: answer.accountSuspended,
  };
}

function entryOf(answer: LookUpKeyResponse): Entry {
  return {
    key: toAdmittedKey(answer),
    validUntilMs: answer.validUntil ? timestampMs(answer.validUntil) : Number.POSITIVE_INFINITY,
  };
}

/** Entries by digest, and the digests of each key, so that a key's change finds its secrets. */
function createCachedKeys(max: number, events: AdmissionEvents) {
  const digests = new Map<string, Set<string>>();
  const entries = createBoundedMap<Entry>(max, (digest, { key }) => forget(key.keyId, digest));
  function forget(keyId: string, digest: string): void {
    const ofKey = digests.get(keyId);
    ofKey?.delete(digest);
    if (ofKey?.size === 0) digests.delete(keyId);
  }
  return {
    get: entries.get,
    put(digest: string, entry: Entry): void {
      const ofKey = digests.get(entry.key.keyId) ?? new Set();
      digests.set(entry.key.keyId, ofKey.add(digest));
      entries.set(digest, entry);
      events.cacheChanged(entries.size);
    },
    dropKeys(keyIds: readonly string[]): void {
      for (const keyId of keyIds) {
        for (const digest of digests.get(keyId) ?? []) entries.delete(digest);
        digests.delete(keyId);
      }
      if (keyIds.length > 0) events.cacheChanged(entries.size);
    },
    clear(): void {
      entries.clear();
      digests.clear();
      events.cacheChanged(0);
    },
  };
}
