// Brings the collections of a service up to this build: its steps, once each, and its indexes. Several replicas may start at
// once.

import type { Document, IndexDescription } from "mongodb";
import type { MongoDatabase } from "./connect.ts";
import { isDuplicate } from "./errors.ts";
import { maxMigrationRounds } from "./limits.ts";

/** An index that a store's queries need. */
export interface MongoIndex {
  /** Never given to another index. A changed index is a new one. */
  name: string;
  /** Fields in their order, each ascending or descending. */
  key: Record<string, 1 | -1>;
  unique?: boolean;
  /** The index holds only documents that match. */
  partial?: Document;
}

/**
 * One step of a component's schema. It may run twice, even at the same time as in another replica. Documents of the step before are
 * still being written while it runs.
 */
export type MongoStep = (db: MongoDatabase) => Promise<void>;

/** The schema of a component in the database. */
export interface MongoSchema {
  /** The name under which its version is kept: "ledger", "auth", …. */
  component: string;
  /** All indexes, by collection. */
  indexes: Record<string, readonly MongoIndex[]>;
  /** From version 0 on, each once, in order. A step that was released is never changed. */
  steps: readonly MongoStep[];
}

/** The database was written by a newer build, and this one must not touch it. */
export class NewerSchemaError extends Error {
  override readonly name = "NewerSchemaError";
}

interface VersionDocument {
  _id: string;
  /** The number of steps that were made. */
  version: number;
}

/** The collection with the versions of all components. */
const versions = "schema_version";

/**
 * Brings each component's collections up to this build: first the missing steps in order, then missing indexes. Replicas that start at
 * the same time may do the same work twice, with the same result. Throws NewerSchemaError where a component was written by a newer
 * build, before anything is changed.
 */
export async function migrate(db: MongoDatabase, schemas: readonly MongoSchema[]): Promise<void> {
  for (const schema of schemas) refuseNewer(schema, await versionOf(db, schema));
  await db.patiently(async (patient) => {
    for (const schema of schemas) {
      await makeSteps(patient, schema);
      await makeIndexes(patient, schema.indexes);
    }
  });
}

/** The step that makes a schema's first indexes. */
export function indexStep(indexes: MongoSchema["indexes"]): MongoStep {
  return (db) => makeIndexes(db, indexes);
}

async function makeSteps(db: MongoDatabase, schema: MongoSchema): Promise<void> {
  for (let round = 0; round < maxMigrationRounds; round++) {
    const version = await versionOf(db, schema);
    refuseNewer(schema, version);
    const step = schema.steps[version];
    if (!step) return;
    await step(db);
    await raise(db, schema.component, version);
  }
  throw new Error(`the schema of ${schema.component} does not come to rest`);
}

function refuseNewer({ component, steps }: MongoSchema, version: number): void {
  if (version <= steps.length) return;
  throw new NewerSchemaError(
    `the collections of ${component} were made by a newer genmesh (version ${version}, known: ${steps.length})`,
  );
}

async function versionOf(db: MongoDatabase, { component }: MongoSchema): Promise<number> {
  const collection = db.collection<VersionDocument>(versions);
  const found = await db.attempt(() => collection.findOne({ _id: component }));
  return Number(found?.version ?? 0);
}

/** Raises the version from `version` to the next. Does nothing where another replica was first. */
async function raise(db: MongoDatabase, component: string, version: number): Promise<void> {
  const collection = db.collection<VersionDocument>(versions);
  const next = version + 1;
  await db.attempt(async () => {
    if (version > 0) {
      await collection.updateOne({ _id: component, version }, { $set: { version: next } });
      return;
    }
    await collection.insertOne({ _id: component, version: next }).catch((error) => {
      if (!isDuplicate(error)) throw error;
    });
  });
}

async function makeIndexes(db: MongoDatabase, indexes: MongoSchema["indexes"]): Promise<void> {
  for (const [collection, list] of Object.entries(indexes)) {
    if (list.length === 0) continue;
    const specs = list.map(
      ({ name, key, unique, partial }): IndexDescription => ({
        name,
        key,
        ...(unique ? { unique } : {}),
        ...(partial ? { partialFilterExpression: partial } : {}),
      }),
    );
    await db.attempt(() => db.collection(collection).createIndexes(specs));
  }
}
