// Sends reads and writes of several wallets as one command to MongoDB. `store-mongo-transition.ts` works on one wallet, and calls
// this.

import type { Collection } from "mongodb";
import { batched } from "#kit/base/batching.ts";
import { mongoFault } from "#kit/store/mongo/errors.ts";
import { lanesOfWrites, maxWritesTogether } from "#kit/store/mongo/limits.ts";
import { type Change, changeAll, changeOne } from "#kit/store/mongo/writes.ts";
import type { JournalDocument, WalletDocument } from "./store-mongo-schema.ts";

/** Shared commands for transitions of different wallets at the same time, because the command is most of the cost. */
export interface SharedCommands {
  /** Looks up documents of the journal by id. It is sent after the call, so after all earlier reads of the caller. */
  journaled(ids: readonly string[]): Promise<JournalDocument[]>;
  /** Writes a wallet where it still matches the filter. False: it does not, or was written and has changed since. */
  compareAndSet(change: WalletChange): Promise<boolean>;
}

/** A change of one wallet, from its state at a version. */
export interface WalletChange extends Change<WalletDocument> {
  name: string;
  /** The hash of its last entry. The wallet has it only after this change. */
  hash: string;
}

const sharing = { lanes: lanesOfWrites, most: maxWritesTogether };

/** Makes it. */
export function createSharedCommands(
  wallets: Collection<WalletDocument>,
  journal: Collection<JournalDocument>,
): SharedCommands {
  const look = batched<readonly string[], JournalDocument[]>(async (lists) => {
    const docs = await journal.find({ _id: { $in: lists.flat() } }).toArray();
    if (docs.length === 0) return lists.map(() => []);
    const found = new Map(docs.map((doc) => [doc._id, doc]));
    return lists.map((ids) => ids.flatMap((id) => found.get(id) ?? []));
  }, sharing);

  const write = batched<WalletChange, boolean | undefined>(async (changes) => {
    const [first] = changes;
    if (changes.length === 1 && first) return [await changeOne(wallets, first)];
    try {
      if (await changeAll(wallets, changes)) return changes.map(() => true);
    } catch (error) {
      // A fault of one wallet is no fault of the others.
      if (mongoFault(error) === "away") throw error;
    }
    return [];
  }, sharing);

  return {
    journaled: look,
    async compareAndSet(change) {
      const written = await write(change);
      if (written !== undefined) return written;
      // Some of them matched. This one did where the wallet has its hash. The others find out by themselves.
      const { name: _id, hash: h } = change;
      const own = await wallets.findOne({ _id, h }, { projection: { _id: 1 } });
      return own !== null || changeOne(wallets, change);
    },
  };
}
