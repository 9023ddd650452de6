import { randomBytes } from "node:crypto";
import { BSON, type Document, MongoClient } from "mongodb";
import { maxRepublishMs } from "../services/media/limits.ts";
import { type GrowthSize, ownCharacters, type Template } from "./growth-seed.ts";

/** Documents of one insert. */
const batchSize = 2_000;
const journal = "ledger_journal";
const wallets = "ledger_wallet";

/** The ids in a template that each copy has for itself, and the number of copies. `accounts` of them differ in their account. */
interface Copies {
  times: number;
  accounts: number;
  own: readonly string[];
  change?(copy: Document, i: number): void;
}

/**
 * Fills a database at a MongoDB server: copies documents that the product wrote, under other ids. They are copied as text, so fields of
 * a later version are copied too. The copies' journals cannot be audited.
 */
export async function seedMongo(url: string, size: GrowthSize, template: Template): Promise<void> {
  await using client = new MongoClient(url);
  const db = client.db();
  const { accountId, endedJob, waitingJob } = template;
  const keys = await db.collection<Document & { _id: string }>("auth_key").find({ accountId });
  const ofAccount = [accountId, ...(await keys.map(({ _id }) => _id).toArray())];
  const jobs = db.collection<Document & { _id: string }>("media_job");
  const outputs: { fileId: string }[] = (await jobs.findOne({ _id: endedJob }))?.outputs ?? [];
  const files = outputs.map(({ fileId }) => fileId);
  const perAccount = { times: size.accounts, accounts: size.accounts, own: [] };
  const ended = { times: size.endedJobs, accounts: size.accounts, own: [endedJob, ...files] };
  const waiting: Copies = {
    ...{ times: size.waitingJobs, accounts: size.waitingAccounts, own: [waitingJob] },
    // Waiting jobs are looked after at intervals that have grown, so that they are not all due at once.
    change(copy, i) {
      if (copy.dueAt)
        copy.dueAt = Number(copy.dueAt) + Math.floor((i * maxRepublishMs) / size.waitingJobs);
    },
  };
  // A document's own id names what it is of. Other documents name the same ids, and have no copies.
  const copiesOf = ({ _id }: Document): Copies | undefined => {
    const own = BSON.EJSON.stringify(_id);
    const names = (ids: readonly string[]) => ids.some((id) => own.includes(tailOf(id)));
    if (names(ended.own)) return ended;
    if (names(waiting.own)) return waiting;
    return names(ofAccount) ? perAccount : undefined;
  };
  const insert = async (collection: string, times: number, make: (i: number) => Document) => {
    for (let i = 0; i < times; ) {
      const end = Math.min(times, i + batchSize);
      const some: Document[] = [];
      while (i < end) some.push(make(i++));
      await db.collection(collection).insertMany(some, { ordered: false });
    }
  };
  for (const { name } of await db.listCollections().toArray()) {
    if (name === journal) continue;
    for (const document of await db.collection(name).find({}, { promoteValues: false }).toArray()) {
      const text = BSON.EJSON.stringify(document, { relaxed: false });
      const copies = copiesOf(document);
      if (!copies) continue;
      const copyOf = copier(text, ofAccount, copies);
      await insert(name, copies.times, copyOf);
    }
  }
  const wallet = `${accountId}/usd_micros`;
  const paid = await db.collection<Document & { _id: string }>(wallets).findOne({ _id: wallet });
  if (!paid) throw new Error(`the wallet ${wallet} is not there`);
  const { op: _op, ...entry } = paid.tail.at(-1);
  const text = BSON.EJSON.stringify({ ...entry, wallet }, { relaxed: false });
  const entryOf = copier(text, ofAccount, { ...perAccount, times: size.entries });
  await insert(journal, size.entries, (i) => {
    const copy = entryOf(i);
    const n = Math.floor(i / size.accounts) + 1;
    return { ...copy, _id: `${copy.wallet}:req_${hex(i, 24)}`, n };
  });
}

/** Makes copy number `i` of a document, with hashes of its own. */
function copier(text: string, ofAccount: readonly string[], { accounts, own, change }: Copies) {
  const ids = [
    ...ofAccount.map((id) => [id, accounts] as const),
    ...own.map((id) => [id, Infinity] as const),
  ];
  return (i: number): Document => {
    let copied = text;
    for (const [id, range] of ids) {
      const tail = tailOf(id);
      copied = copied.replaceAll(
        tail,
        tail.slice(0, -ownCharacters) + hex(i % range, ownCharacters),
      );
    }
    const unlike = copied
      .replace(/"base64":"[^"]{43}="/g, () => `"base64":"${randomBytes(32).toString("base64")}"`)
      .replace(
        /"(?:[0-9a-f]{32}){1,2}"/g,
        (text) => `"${randomBytes((text.length - 2) / 2).toString("hex")}"`,
      );
    const copy: Document = BSON.EJSON.parse(unlike, { relaxed: false });
    change?.(copy, i);
    return copy;
  };
}

/** An id without its kind, as other ids may contain it. */
function tailOf(id: string): string {
  return id.slice(id.indexOf("_") + 1);
}

function hex(i: number, characters: number): string {
  return i.toString(16).padStart(characters, "0");
}
