// Keeps the documents of `port.ts` in MongoDB. `open.ts` chooses it where the process has MongoDB. `sqlite.ts` does the same in
// SQLite.

import type { Collection, Document, Filter, ObjectId, UpdateFilter } from "mongodb";
import type { MongoDatabase } from "#kit/store/mongo/connect.ts";
import { mongodb } from "#kit/store/mongo/driver.ts";
import { awayRefusal, isDuplicate } from "#kit/store/mongo/errors.ts";
import { indexStep, type MongoIndex, type MongoSchema } from "#kit/store/mongo/migrate.ts";
import { type Documents, type Fit, removed, type Step, type Stretch } from "./port.ts";
import {
  type AnySchema,
  type Component,
  type Condition,
  changesOf,
  type DocumentsIndex,
  type DocumentsSchema,
} from "./schema.ts";

/** A document as it lies in its collection. */
interface Stored extends Document {
  _id: string;
}

/** Rounds of a change that finds its document changed by another process each time. Each time one of them succeeded. */
const maxChangeRounds = 64;

/** Undefined fields are not stored. */
const sparsely = { ignoreUndefined: true } as const;
const onlyId = { projection: { _id: 1 } } as const;

/** A component's collections and indexes in MongoDB. */
export function mongoSchemaOf({ name, kinds }: Component): MongoSchema {
  const indexes = Object.fromEntries(kinds.map((kind) => [kind.name, mongoIndexesOf(kind)]));
  return { component: name, indexes, steps: [indexStep(indexes)] };
}

function mongoIndexesOf(schema: AnySchema): MongoIndex[] {
  return Object.entries(schema.indexes).map(([name, { key, unique, where }]) => ({
    name,
    key: Object.fromEntries(
      Object.entries(key).map(([field, way]) => [pathOf(schema, field), way]),
    ),
    ...(unique ? { unique } : {}),
    ...(where ? { partial: conditionsOf(where) } : {}),
  }));
}

/** Documents in MongoDB: each of their changes is a compare-and-set. */
export function createMongoDocuments<D extends object, I extends string>(
  db: MongoDatabase,
  schema: DocumentsSchema<D, I>,
): Documents<D, I> {
  const collection = db.collection<Stored>(schema.name);
  const form = createForm<D>(schema);
  const read = (index: I, stretch: Stretch, projection: Document) => {
    const { filter, sort } = selection(schema, index, stretch);
    const { skip = 0, limit = 0 } = stretch;
    return collection.find(filter, { projection, sort, skip, limit }).toArray();
  };
  /** A filter for those in a stretch, and how many they are where it was counted. A document that has left the stretch by then stays. */
  const some = async (index: I, stretch: Stretch) => {
    const { filter } = selection(schema, index, stretch);
    if (stretch.skip === undefined && stretch.limit === undefined) return { filter };
    const ids = (await read(index, stretch, { _id: 1 })).map(({ _id }) => _id);
    return { filter: { ...filter, _id: { $in: ids } }, found: ids.length };
  };
  return {
    insert: (doc) => db.attempt(() => isInserted(collection, form.stored(doc))),
    find: (id) =>
      db.attempt(async () => {
        const doc = await collection.findOne({ _id: id });
        return doc ? form.documentOf(doc) : undefined;
      }),
    change(id, step, { named = false, first } = {}) {
      const name = named ? new (mongodb().ObjectId)() : undefined;
      const changing = createChange<D>(collection, form, schema, { id, step, name, first });
      return db.attempt(changing);
    },
    set(id, fit, values, { named = false } = {}) {
      const name = named ? { [schema.changeName ?? ""]: new (mongodb().ObjectId)() } : {};
      const update = form.update({ ...values, ...name });
      return db.attempt(async (unsure) => {
        const { matchedCount } = await collection.updateOne(fitting(id, fit), update, sparsely);
        if (matchedCount === 1 || !unsure || !named) return matchedCount === 1;
        return (await collection.findOne({ _id: id, ...name }, onlyId)) !== null;
      });
    },
    async remove(id, fit = {}) {
      await db.attempt(() => collection.deleteOne(fitting(id, fit)));
    },
    seek: (index, { without = [], ...stretch }) =>
      db.attempt(async () => {
        const projection = Object.fromEntries(without.map((field) => [field, 0]));
        return (await read(index, stretch, projection)).map(form.documentOf);
      }),
    firstOfNext: (index, { behind, upTo }) =>
      db.attempt(async () => {
        const [doc] = await read(index, { behind: [behind], upTo, limit: 1 }, {});
        return doc && form.documentOf(doc);
      }),
    count: (index, stretch) =>
      db.attempt(() => collection.countDocuments(selection(schema, index, stretch).filter)),
    setSome: (index, stretch, values) =>
      db.attempt(async () => {
        const { filter, found } = await some(index, stretch);
        if (found === 0) return 0;
        const { matchedCount } = await collection.updateMany(filter, form.update(values), sparsely);
        return found ?? matchedCount;
      }),
    removeSome: (index, stretch) =>
      db.attempt(async () => {
        const { filter, found } = await some(index, stretch);
        if (found === 0) return 0;
        const { deletedCount } = await collection.deleteMany(filter);
        return found ?? deletedCount;
      }),
  };
}

/** Writes a document. False where its id, or its place in a unique index, is taken. */
async function isInserted(collection: Collection<Stored>, doc: Stored): Promise<boolean> {
  try {
    await collection.insertOne(doc, sparsely);
    return true;
  } catch (error) {
    if (isDuplicate(error)) return false;
    throw error;
  }
}

/** A change of one document: `name` is its own where it has one. */
function createChange<D extends object>(
  collection: Collection<Stored>,
  form: Form<D>,
  { name: kind, changeName = "" }: AnySchema,
  { id, step, name, first }: ChangeOf<D>,
): (unsure: boolean) => Promise<D | undefined> {
  let sent: D | undefined;
  return async (unsure) => {
    if (unsure && sent && name) {
      const own = await collection.findOne({ _id: id, [changeName]: name }, onlyId);
      if (own) return sent;
    }
    for (let round = 0; round < maxChangeRounds; round++) {
      const stored = await collection.findOne({ _id: id });
      const before = stored ? form.documentOf(stored) : first;
      const after = before && step(before);
      if (!before || after === undefined) return undefined;
      if (!stored) {
        if (after === removed) return undefined;
        sent = after;
        const own = name ? { ...after, [changeName]: name } : after;
        if (await isInserted(collection, form.stored(own))) return after;
        continue;
      }
      const asRead = form.asRead(stored);
      if (after === removed) {
        const { deletedCount } = await collection.deleteOne(asRead);
        if (deletedCount === 1) return before;
        continue;
      }
      const changes = changesOf(before, after);
      if (Object.keys(changes).length === 0) return after;
      sent = after;
      const update = form.update(name ? { ...changes, [changeName]: name } : changes);
      const { matchedCount } = await collection.updateOne(asRead, update, sparsely);
      if (matchedCount === 1) return after;
    }
    throw awayRefusal(new Error(`a document of ${kind} does not come to rest`));
  };
}

interface ChangeOf<D> {
  id: string;
  step: Step<D>;
  name: ObjectId | undefined;
  first: D | undefined;
}

type Form<D> = ReturnType<typeof createForm<D & object>>;

/** How documents lie in their collection. */
function createForm<D extends object>({ id, compare, changeName }: AnySchema) {
  const version = "version" in compare ? compare.version : undefined;
  const fields = "fields" in compare ? compare.fields : [compare.version];
  return {
    stored(doc: D): Stored {
      const { [id]: key, ...rest } = doc as Record<string, unknown>;
      return { _id: String(key), ...(version === undefined ? {} : { [version]: 1 }), ...rest };
    },
    documentOf({ _id, ...stored }: Stored): D {
      if (version !== undefined) delete stored[version];
      if (changeName !== undefined) delete stored[changeName];
      return { [id]: _id, ...stored } as D;
    },
    /** Fits a document as long as no change of it was made since. */
    asRead: (stored: Stored): Filter<Stored> => ({
      _id: stored._id,
      ...Object.fromEntries(
        fields.map((field) => [field, field in stored ? stored[field] : { $exists: false }]),
      ),
    }),
    update(changes: object): UpdateFilter<Stored> {
      const entries = Object.entries(changes);
      const gone = entries.filter(([, value]) => value === undefined).map(([field]) => [field, ""]);
      const set = Object.fromEntries(entries.filter(([, value]) => value !== undefined));
      return {
        ...(Object.keys(set).length > 0 ? { $set: set } : {}),
        ...(gone.length > 0 ? { $unset: Object.fromEntries(gone) } : {}),
        ...(version === undefined ? {} : { $inc: { [version]: 1 } }),
      };
    },
  };
}

/** The documents of a stretch, and their order. */
function selection(
  schema: AnySchema,
  index: string,
  stretch: Stretch,
): { filter: Filter<Stored>; sort: Record<string, 1 | -1> } {
  const definition = schema.indexes[index] as DocumentsIndex;
  const { of = [], behind = [], upTo, and = {}, newestFirst } = stretch;
  const way = newestFirst ? "$lt" : "$gt";
  const fields = Object.keys(definition.key).map((field) => pathOf(schema, field));
  const filter: Document = { ...conditionsOf(definition.where ?? {}), ...and };
  const [first = "", second = "", third = ""] = fields.slice(of.length);
  for (const [i, value] of of.entries()) {
    filter[fields[i] ?? ""] = Array.isArray(value) ? { $in: value } : value;
  }
  const [near, far] = behind;
  if (far !== undefined) {
    filter[first] = { [`${way}e`]: near };
    filter.$or = [{ [first]: { [way]: near } }, { [second]: { [way]: far } }];
  } else if (near !== undefined) filter[first] = { [way]: near };
  if (upTo !== undefined) filter[[first, second, third][behind.length] ?? ""] = { $lte: upTo };
  // Documents of several values lie apart.
  const order = of.some(Array.isArray) ? [] : fields.slice(of.length);
  const sort = order.map((field) => [field, newestFirst ? -1 : 1]);
  return { filter, sort: Object.fromEntries(sort) };
}

function fitting(id: string, fit: Fit): Filter<Stored> {
  const conditions = Object.entries(fit).map(([field, wanted]) => {
    if (typeof wanted !== "object") return [field, wanted];
    if ("there" in wanted) return [field, { $exists: wanted.there }];
    if ("upTo" in wanted) return [field, { $lte: wanted.upTo }];
    if ("absentOrBelow" in wanted) return [field, { $not: { $gte: wanted.absentOrBelow } }];
    return [field, { $in: wanted }];
  });
  return { _id: id, ...Object.fromEntries(conditions) };
}

function conditionsOf(where: Readonly<Record<string, Condition>>): Document {
  const conditions = Object.entries(where).map(([field, condition]) => {
    if (condition === "there") return [field, { $exists: true }];
    return [field, condition === "not empty" ? { $gt: "" } : condition.is];
  });
  return Object.fromEntries(conditions);
}

function pathOf({ id }: AnySchema, field: string): string {
  return field === id ? "_id" : field;
}
