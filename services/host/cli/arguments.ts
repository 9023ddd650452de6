import { InvalidArgumentError } from "commander";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";

/** Amounts of money and credits: whole numbers of at most 15 digits. */
export function amount(value: string): bigint {
  if (!/^\d{1,15}$/.test(value))
    throw new InvalidArgumentError("It must be a whole number of up to 15 digits.");
  return BigInt(value);
}

/** A whole number of at least `min`. */
export function wholeNumber(min: number, max: number): (value: string) => number {
  return (value) => {
    const number = Number(value);
    if (!/^\d+$/.test(value) || number < min || number > max) {
      throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`);
    }
    return number;
  };
}

/** A time: ISO 8601, answered in milliseconds since the epoch. */
export function time(value: string): number {
  const ms = Date.parse(value);
  if (Number.isNaN(ms))
    throw new InvalidArgumentError("It must be a time like 2027-01-31T00:00:00Z.");
  return ms;
}

/** An operation id that auth and billing take alike, with room for the prefix of an account's first funds. */
export function operationId(value: string): string {
  if (!/^[A-Za-z0-9_.:-]{1,100}$/.test(value))
    throw new InvalidArgumentError("It must be 1 to 100 characters of A-Z, a-z, 0-9, _ . : and -.");
  return value;
}

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
};

/** Collects a repeatable --scope. */
export function scope(value: string, before: Scope[] = []): Scope[] {
  const found = scopeNames[value];
  if (found === undefined) {
    throw new InvalidArgumentError(`It must be one of: ${Object.keys(scopeNames).join(", ")}.`);
  }
  return [...before, found];
}

/** Collects a repeatable option. */
export function collect(value: string, before: string[] = []): string[] {
  return [...before, value];
}

/** The name of a scope. */
export function scopeName(value: Scope): string {
  return Object.entries(scopeNames).find(([, one]) => one === value)?.[0] ?? String(value);
}
