import { describe, expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { type Key, revoked, rotated, validityOf } from "./key.ts";

const now = 1_000_000;
const [s1, s2, s3] = [1, 2, 3].map((n) => ({
  sha256: Buffer.alloc(32, n),
  hint: `${n}${n}${n}${n}`,
}));
if (!s1 || !s2 || !s3) throw new Error("three secrets");
const key: Key = {
  keyId: "key_1",
  accountId: "acct_1",
  secret: s1,
  scopes: [],
  allowedModels: [],
  createdAtMs: now - 10,
  requestsPerMinute: 60,
};

describe("validity", () => {
  test("a key without an end is valid without an end", () => {
    expect(validityOf(key, s1.sha256, now)).toEqual({});
  });

  test("another secret is none of this key's", () => {
    expect(validityOf(key, s2.sha256, now)).toBeUndefined();
    expect(validityOf(key, s1.sha256.subarray(1), now)).toBeUndefined();
    expect(validityOf(key, new Uint8Array(), now)).toBeUndefined();
  });

  test("an expiry is exclusive", () => {
    const expiring = { ...key, expiresAtMs: now + 100 };
    expect(validityOf(expiring, s1.sha256, now + 99)).toEqual({ untilMs: now + 100 });
    expect(validityOf(expiring, s1.sha256, now + 100)).toBeUndefined();
  });

  test("revoked is invalid, with any secret and in any other state", () => {
    const ended = revoked(rotated(key, s2, 100, now), now + 1);
    expect(validityOf(ended, s1.sha256, now + 1)).toBeUndefined();
    expect(validityOf(ended, s2.sha256, now + 1)).toBeUndefined();
  });
});

describe("rotation", () => {
  test("the key id stays, the former secret lives to the end of its grace", () => {
    const next = rotated(key, s2, 100, now);
    expect(next).toMatchObject({ keyId: "key_1", secret: s2 });
    expect(validityOf(next, s2.sha256, now)).toEqual({});
    expect(validityOf(next, s1.sha256, now + 99)).toEqual({ untilMs: now + 100 });
    expect(validityOf(next, s1.sha256, now + 100)).toBeUndefined();
    expect(validityOf(next, s2.sha256, now + 100)).toEqual({});
  });

  test("a grace ends no later than the key", () => {
    const next = rotated({ ...key, expiresAtMs: now + 50 }, s2, 100, now);
    expect(validityOf(next, s1.sha256, now)).toEqual({ untilMs: now + 50 });
    expect(validityOf(next, s2.sha256, now)).toEqual({ untilMs: now + 50 });
    expect(validityOf(next, s1.sha256, now + 50)).toBeUndefined();
  });

  test("without grace the former secret ends at once", () => {
    const next = rotated(key, s2, 0, now);
    expect(next.former).toBeUndefined();
    expect(validityOf(next, s1.sha256, now)).toBeUndefined();
  });

  test("a secret that was former already ends at once, with or without a new grace", () => {
    const twice = rotated(rotated(key, s2, 1_000, now), s3, 1_000, now + 1);
    expect(validityOf(twice, s1.sha256, now + 1)).toBeUndefined();
    expect(validityOf(twice, s2.sha256, now + 1)).toEqual({ untilMs: now + 1_001 });
    const cut = rotated(rotated(key, s2, 1_000, now), s3, 0, now + 1);
    expect(validityOf(cut, s1.sha256, now + 1)).toBeUndefined();
    expect(validityOf(cut, s2.sha256, now + 1)).toBeUndefined();
  });

  test("a revoked key is not rotated", () => {
    expect(() => rotated(revoked(key, now), s2, 0, now)).toThrow(
      expect.objectContaining({ reason: ErrorReason.OPERATION_CONFLICT }),
    );
  });

  test("nothing is changed in place", () => {
    const before = JSON.stringify(key);
    rotated(key, s2, 100, now);
    revoked(key, now);
    expect(JSON.stringify(key)).toBe(before);
  });
});

test("a revocation keeps its first time", () => {
  const once = revoked(key, now);
  expect(once.revokedAtMs).toBe(now);
  expect(revoked(once, now + 5)).toBe(once);
});
