// Keeps versions of the catalog as documents, in SQLite or MongoDB.

import { documentsIn, openDocuments } from "#kit/documents/open.ts";
import type { Component, DocumentsSchema } from "#kit/documents/schema.ts";
import type { Database } from "#kit/store/database.ts";
import type { FileRead } from "./file.ts";
import type { CatalogVersion, VersionFacts, VersionStore } from "./version.ts";

/** A version as it is kept. */
interface VersionDocument extends VersionFacts {
  /** Its number in decimal. */
  versionId: string;
  text: string;
  /** A list, because names of files have dots. Absent: the text names none. */
  workflows?: readonly { name: string; text: string }[];
}

const indexes = {
  number: { key: { number: 1 }, unique: true },
  operation: { key: { operationId: 1 }, unique: true },
} as const;

/** Texts have columns, so that lists and the watch of the newest version do not read them. */
const versionSchema: DocumentsSchema<VersionDocument, keyof typeof indexes> = {
  name: "catalog_version",
  id: "versionId",
  columns: { number: "integer", operationId: "text", text: "text", workflows: "json" },
  indexes,
  compare: { fields: ["number"] },
};

/** The triggers refuse accidental changes of a version. */
const tables = [
  `CREATE TABLE catalog_version (
     version_id TEXT PRIMARY KEY,
     number INTEGER NOT NULL,
     operation_id TEXT NOT NULL,
     text TEXT NOT NULL,
     workflows TEXT,
     doc TEXT NOT NULL
   ) STRICT;
   CREATE TRIGGER catalog_version_no_update BEFORE UPDATE ON catalog_version
     BEGIN SELECT RAISE(ABORT, 'versions of the catalog never change'); END;
   CREATE TRIGGER catalog_version_no_delete BEFORE DELETE ON catalog_version
     BEGIN SELECT RAISE(ABORT, 'versions of the catalog are append-only'); END;`,
];

/** The versions of the catalog, and their table in SQLite. */
export const catalogComponent: Component = { name: "catalog", kinds: [versionSchema], tables };

/** The versions in the process's database. A version is a document. */
export function createVersionStore(database: Database): VersionStore {
  const versions = documentsIn(database, versionSchema);
  const without = ["text", "workflows"] as const;
  return {
    open: () => openDocuments(database, catalogComponent),
    add: (version) => versions.insert(documentOf(version)),
    async find(number) {
      const found = await versions.find(String(number));
      return found && versionOf(found);
    },
    async madeBy(operationId) {
      const [found] = await versions.seek("operation", { of: [operationId], limit: 1, without });
      return found && factsOf(found);
    },
    async newest() {
      const all = { upTo: Number.MAX_SAFE_INTEGER, newestFirst: true } as const;
      const [found] = await versions.seek("number", { ...all, limit: 1, without });
      return found && factsOf(found);
    },
    async list({ below, limit }) {
      const page = { behind: [below], newestFirst: true, limit, without };
      return (await versions.seek("number", page)).map(factsOf);
    },
  };
}

function documentOf({ workflows, ...version }: CatalogVersion): VersionDocument {
  const files = [...workflows].flatMap(([name, { text }]) =>
    text === undefined ? [] : [{ name, text }],
  );
  const versionId = String(version.number);
  return { ...version, versionId, ...(files.length === 0 ? {} : { workflows: files }) };
}

function versionOf({ versionId: _, workflows = [], ...version }: VersionDocument): CatalogVersion {
  const files = workflows.map(({ name, text }): [string, FileRead] => [name, { text }]);
  return { ...version, workflows: new Map(files) };
}

function factsOf({
  versionId: _,
  ...facts
}: Omit<VersionDocument, "text" | "workflows">): VersionFacts {
  return facts;
}
