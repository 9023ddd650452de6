import type { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { Account, Key } from "./key.ts";
import type { StoredKey } from "./store.ts";
import type { KeyDocument } from "./store-mongo-schema.ts";

/** The part of a key's document that its key decides. */
export type KeyFields = Omit<KeyDocument, "_id" | "v" | "accountId" | "place" | "account">;

/** A hash as it is stored. */
export function hashText(sha256: Uint8Array): string {
  return Buffer.from(sha256).toString("hex");
}

/** A key's fields; what a key may lack is absent. */
export function keyFields(key: StoredKey): KeyFields {
  const { former, expiresAtMs, revokedAtMs, monthlyUsdMicrosLimit } = key;
  return {
    hashes: [key.secret.sha256, ...(former ? [former.sha256] : [])].map(hashText),
    hint: key.secret.hint,
    ...(former ? { formerEndMs: former.endMs } : {}),
    scopes: [...key.scopes],
    allowedModels: [...key.allowedModels],
    createdAtMs: key.createdAtMs,
    ...(expiresAtMs === undefined ? {} : { expiresAtMs }),
    ...(revokedAtMs === undefined ? {} : { revokedAtMs }),
    ...(monthlyUsdMicrosLimit === undefined ? {} : { monthlyUsdMicrosLimit }),
    requestsPerMinute: key.requestsPerMinute,
    revision: key.revision,
  };
}

/** The key in a document. */
export function keyOf(doc: KeyDocument): StoredKey {
  const [current = "", former] = doc.hashes;
  const { expiresAtMs, revokedAtMs, monthlyUsdMicrosLimit } = doc;
  return {
    keyId: doc._id,
    accountId: doc.accountId,
    secret: { sha256: Buffer.from(current, "hex"), hint: doc.hint },
    ...(former === undefined
      ? {}
      : { former: { sha256: Buffer.from(former, "hex"), endMs: Number(doc.formerEndMs) } }),
    scopes: doc.scopes as Scope[],
    allowedModels: doc.allowedModels,
    createdAtMs: doc.createdAtMs,
    ...(expiresAtMs === undefined ? {} : { expiresAtMs }),
    ...(revokedAtMs === undefined ? {} : { revokedAtMs }),
    ...(monthlyUsdMicrosLimit === undefined ? {} : { monthlyUsdMicrosLimit }),
    requestsPerMinute: doc.requestsPerMinute,
    revision: doc.revision,
  };
}

/** The account in the document of its first key. */
export function accountOf(doc: Pick<KeyDocument, "accountId" | "account">): Account {
  const { accountId, account } = doc;
  if (!account) throw new Error(`the first key of ${accountId} carries no account`);
  const { name, createdAtMs, requestsPerMinute } = account;
  return { accountId, name, createdAtMs, requestsPerMinute };
}

/** Has the key this hash, as its current or its former one? */
export function hasHash(key: Key, sha256: Uint8Array): boolean {
  const hash = hashText(sha256);
  return [key.secret.sha256, key.former?.sha256].some((one) => one && hashText(one) === hash);
}
