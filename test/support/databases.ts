import { MongoClient } from "mongodb";
import { nameFor } from "./stores.ts";

/** Databases of one server that tests use one after the other. */
export interface Databases extends AsyncDisposable {
  /** An empty database. It has its indexes already where an earlier test used it. */
  take(): string;
  /** Empties a database without further writes, and gives it back. */
  leave(name: string): Promise<void>;
}

/**
 * Making the indexes of a new database takes a second and more, and emptying one a tenth of that. The databases are dropped at the end. Not
 * for tests that kill processes or break connections, because an unfinished write may still arrive in the next test's database.
 */
export function createDatabases(url: string): Databases {
  const free: string[] = [];
  const made: string[] = [];
  let client: MongoClient | undefined;
  const open = () => {
    client ??= new MongoClient(url);
    return client;
  };
  return {
    take() {
      const known = free.shift();
      if (known !== undefined) return known;
      const name = nameFor("test");
      made.push(name);
      return name;
    },
    async leave(name) {
      await empty(open(), name);
      free.push(name);
    },
    async [Symbol.asyncDispose]() {
      for (const name of made.splice(0)) await open().db(name).dropDatabase();
      free.length = 0;
      await client?.close();
      client = undefined;
    },
  };
}

/** Deletes all documents except for those that record the indexes. */
async function empty(client: MongoClient, name: string): Promise<void> {
  const collections = await client.db(name).collections();
  const kept = collections.filter(({ collectionName }) => collectionName !== "schema_version");
  await Promise.all(kept.map((one) => one.deleteMany({})));
}
