import { hash } from "node:crypto";
import { type Entry, packedRef, type WalletRef, walletName } from "./wallet.ts";

/** An entry that is not yet chained. */
export type UnsealedEntry = Omit<Entry, "hash">;

/**
 * SHA-256, lower-case hexadecimal, of an entry's canonical form with the hash before it ("" for the first). The form is a JSON array of
 * fixed order, in which no two entries are equal. It holds the wallet's name, so that an entry cannot be moved to another wallet.
 */
export function entryHash(previous: string, wallet: WalletRef, entry: UnsealedEntry): string {
  const form = [
    previous,
    walletName(wallet),
    entry.n,
    entry.operationId,
    entry.kind,
    entry.holdId,
    entry.holdKind,
    entry.keyId,
    entry.amount.toString(),
    entry.freeDelta.toString(),
    entry.heldDelta.toString(),
    entry.spentDelta.toString(),
    packedRef(entry),
    entry.at,
    entry.checkAt,
  ];
  return hash("sha256", JSON.stringify(form));
}

/** The entry with its hash. */
export function seal(previous: string, wallet: WalletRef, entry: UnsealedEntry): Entry {
  return { ...entry, hash: entryHash(previous, wallet, entry) };
}
