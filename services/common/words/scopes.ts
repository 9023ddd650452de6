// The scopes of keys: their names, and those that a key has without listing any. The edge, auth and the command go by them.

import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";

/** Names of scopes as people write them. */
export const scopeNames: Readonly<Record<string, Scope>> = {
  text: Scope.TEXT,
  images: Scope.IMAGES,
  videos: Scope.VIDEOS,
  music: Scope.MUSIC,
  speech: Scope.SPEECH,
  files: Scope.FILES,
  models: Scope.MODELS,
  billing: Scope.BILLING,
  keys: Scope.KEYS,
  "usage:read-all": Scope.USAGE_READ_ALL,
  "jobs:read-all": Scope.JOBS_READ_ALL,
  webhooks: Scope.WEBHOOKS,
};

/** The name of a scope. */
export function scopeName(value: Scope): string {
  return Object.entries(scopeNames).find(([, one]) => one === value)?.[0] ?? String(value);
}

/**
 * The scopes of a key without listed scopes. Scopes to manage keys, to read other keys' usage and output, or to sign for the account
 * are never implied.
 */
export const impliedScopes: ReadonlySet<Scope> = new Set([
  Scope.TEXT,
  Scope.IMAGES,
  Scope.VIDEOS,
  Scope.MUSIC,
  Scope.SPEECH,
  Scope.FILES,
  Scope.MODELS,
  Scope.BILLING,
]);

/** The scopes of the first key of an installation: all implied ones, and those to manage its account's keys, webhooks and output. */
export const ownerScopes: readonly Scope[] = [
  ...impliedScopes,
  Scope.WEBHOOKS,
  Scope.KEYS,
  Scope.USAGE_READ_ALL,
  Scope.JOBS_READ_ALL,
];

/** The scopes that a key with these listed scopes has. */
export function effectiveScopes(scopes: readonly Scope[]): ReadonlySet<Scope> {
  return scopes.length === 0 ? impliedScopes : new Set(scopes);
}
