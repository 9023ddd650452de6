// Gives a store of a service its documents, in the database that the process has. Stores import this, and neither adapter.

import type { Database } from "#kit/store/database.ts";
import { migrate } from "#kit/store/mongo/migrate.ts";
import { createMongoDocuments, mongoSchemaOf } from "./mongo.ts";
import type { Documents } from "./port.ts";
import type { Component, DocumentsSchema } from "./schema.ts";
import { createSqliteDocuments, migrateSqliteDocuments } from "./sqlite.ts";

/** Brings what a component keeps up to this build: tables or collections, and their indexes. To be called once, before all else. */
export async function openDocuments(database: Database, component: Component): Promise<void> {
  switch (database.kind) {
    case "sqlite":
      return migrateSqliteDocuments(database.sqlite, component);
    case "mongodb":
      return migrate(database.mongo, [mongoSchemaOf(component)]);
  }
}

/** The documents of a kind in the process's database. */
export function documentsIn<D extends object, I extends string>(
  database: Database,
  schema: DocumentsSchema<D, I>,
): Documents<D, I> {
  switch (database.kind) {
    case "sqlite":
      return createSqliteDocuments(database.sqlite, schema);
    case "mongodb":
      return createMongoDocuments(database.mongo, schema);
  }
}
