import type { Collection } from "mongodb";
import { batched } from "#kit/base/batching.ts";
import { mongoFault } from "#kit/store/mongo/errors.ts";
import { lanesOfWrites, maxWritesTogether } from "#kit/store/mongo/limits.ts";
import { type Change, changeAll, changeOne } from "#kit/store/mongo/writes.ts";
import type { JournalDocument, WalletDocument } from "./store-mongo-schema.ts";

/** What transitions of different wallets do at the same time, in one command each: most of the cost is the command. */
export interface SharedCommands {
  /** Looks documents of the journal up by id. Sent after the call, so after all that the caller has read. */
  journaled(ids: readonly string[]): Promise<JournalDocument[]>;
  /** Writes a wallet where it is still as the filter says; false: it is not, or was written and is another by now. */
  compareAndSet(change: WalletChange): Promise<boolean>;
}

/** A change of one wallet, as it was at its version. */
export interface WalletChange extends Change<WalletDocument> {
  name: string;
  /** Of its last entry: the wallet has it with this change and with no other. */
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
      // What is wrong with one wallet is no fault of the others.
      if (mongoFault(error) === "away") throw error;
    }
    return [];
  }, sharing);

  return {
    journaled: look,
    async compareAndSet(change) {
      const written = await write(change);
      if (written !== undefined) return written;
      // Some of them fitted. This one did where the wallet has its hash; what did not may find out by itself.
      const { name: _id, hash: h } = change;
      const own = await wallets.findOne({ _id, h }, { projection: { _id: 1 } });
      return own !== null || changeOne(wallets, change);
    },
  };
}
