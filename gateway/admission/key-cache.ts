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

/** What the edge knows of a key. */
export interface AdmittedKey {
  readonly accountId: string;
  readonly keyId: string;
  /** Route families that it may use: all of them where auth names none. */
  readonly scopes: ReadonlySet<Scope>;
  /** Model ids that it may use; empty: all. */
  readonly allowedModels: readonly string[];
  readonly monthlyUsdMicrosLimit: bigint | undefined;
  readonly limitReset: KeyLimitReset;
  /** The address that is told of the ends of its jobs; empty: none. */
  readonly webhookUrl: string;
  readonly requestsPerMinute: number;
  readonly accountRequestsPerMinute: number;
  /** Its account is suspended: it may only read. */
  readonly accountSuspended: boolean;
}

/** The keys behind the secrets that callers send, known without a call where they were seen before. */
export interface KeyCache extends AsyncDisposable {
  /**
   * The key of a secret: at once where it is cached and auth was heard of within 5 s, else by a call, which is shared with all
   * requests of the same secret that come before it begins. Refuses with INVALID_API_KEY what is unknown, revoked, expired or past its
   * grace; with SERVICE_UNAVAILABLE where that cannot be told, because auth does not answer a look-up within 2 s.
   */
  admit(secret: string): AdmittedKey | Promise<AdmittedKey>;
  /** Resolves when auth was heard for the first time, from when on keys are cached. */
  readonly ready: Promise<void>;
  /** Undefined when cached keys count; else one line that says why not. */
  notReady(): string | undefined;
}

interface Entry {
  readonly key: AdmittedKey;
  /** Expiry of the key or end of its former secret's grace; Infinity: none. */
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
  const watch = watchKeys({
    ...deps,
    listener: { forget: cached.clear, changed: cached.dropKeys },
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
      // Our own stop: the caller is told to come back, not that it left.
      return refuse(ErrorReason.SERVICE_UNAVAILABLE, { metadata: retrySoon, cause: error });
    }
  };
  const shared = (digest: string): Promise<Entry> => {
    if (!lookUps.has(digest) && lookUps.size >= limits.maxLookUps) {
      refuse(ErrorReason.SERVICE_UNAVAILABLE, { metadata: retrySoon });
    }
    return lookUps.add(digest, async () => {
      // The one that it waited for may have cached the key.
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
      // While auth is not heard of, what is cached says nothing; what auth answers when it is asked does.
      if (entry && watch.inForce()) return use(entry);
      const untilMs = invalidUntilMs.get(digest);
      if (untilMs !== undefined && clock.steady() < untilMs) refuse(ErrorReason.INVALID_API_KEY);
      return shared(digest).then(use);
    },
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
/** A look-up that a change overtook is asked once more; then its answer serves one request and is not kept. */
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
    // An answer older than what the watch has told since may hold a key that was revoked in between: news of it will
    // not come again. While auth is not heard there is nothing to tell us of changes at all.
    const isCurrent = answer.revision >= watch.revision();
    if (isCurrent && epoch === watch.epoch() && watch.inForce()) put(digest, entry);
    if (isCurrent || asks === maxAsks) return entry;
  }
}

/** What the edge knows of a key by auth's answer. */
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
