import { MongoClient } from "mongodb";
import { afterAll, afterEach, describe } from "vitest";
import { type MongoDatabase, type MongoOptions, openMongo } from "#kit/store/mongo/connect.ts";
import { type MongoSchema, migrate } from "#kit/store/mongo/migrate.ts";
import { findBackend } from "./backends.ts";
import { createDatabases } from "./databases.ts";
import { createQueryWatch, judge, scans } from "./mongo-queries.ts";
import { nameFor } from "./stores.ts";

/** Databases of some tests on one server. */
export interface MongoTests {
  url: string;
  /** A database of the test's own, dropped after the test. */
  newName(): string;
  /** A client of the test's own, closed after the test. */
  connect(name: string, options?: Partial<MongoOptions>): MongoDatabase;
  /** The server itself, to read and change stored documents. */
  raw(name: string): ReturnType<MongoClient["db"]>;
  /**
   * Checks all queries of {@link connect} in this file against a schema. It finds shapes that no index serves and indexes that no query
   * needs. Where the server shows MongoDB's own plans, it finds queries that it answers by a scan.
   */
  judgeQueries(schema: MongoSchema): Promise<Verdict>;
}

export interface Verdict {
  shapes: string[];
  unserved: string[];
  unused: string[];
  scans: string[];
}

/** The use of databases by tests. */
export interface DatabaseUse {
  /**
   * Databases are reused one after the other, with the indexes of the first. This is for tests of one schema that await all their requests.
   * By default each test makes its own, which takes a second and more.
   */
  inTurn?: boolean;
}

/** Tests on a MongoDB server. Without one, a skipped test shows the reason. */
export async function describeMongo(
  title: string,
  tests: (mongo: MongoTests) => void,
  use: DatabaseUse = {},
): Promise<void> {
  const { url, note } = await findBackend("mongodb");
  describe.skipIf(url === undefined)(`${title}${note}`, () => tests(mongoTests(url ?? "", use)));
}

function mongoTests(url: string, { inTurn = false }: DatabaseUse): MongoTests {
  const names: string[] = [];
  const databases = createDatabases(url);
  const clients: MongoDatabase[] = [];
  const watch = createQueryWatch();
  let client: MongoClient | undefined;
  const operator = () => {
    client ??= new MongoClient(url, { useBigInt64: true });
    return client;
  };
  const newName = () => {
    const name = inTurn ? databases.take() : nameFor("test");
    names.push(name);
    return name;
  };
  afterEach(async () => {
    for (const one of clients.splice(0)) await one[Symbol.asyncDispose]();
    for (const name of names.splice(0)) {
      await (inTurn ? databases.leave(name) : operator().db(name).dropDatabase());
    }
  });
  afterAll(async () => {
    await databases[Symbol.asyncDispose]();
    await client?.close();
  });
  return {
    url,
    newName,
    connect(name, options = {}) {
      const one = openMongo({ url, name, onCommand: watch.onCommand, ...options });
      clients.push(one);
      return one;
    },
    raw: (name) => operator().db(name),
    async judgeQueries(schema) {
      const queries = watch.queries().filter(({ collection }) => collection in schema.indexes);
      const name = newName();
      await using db = openMongo({ url, name });
      await migrate(db, [schema]);
      return {
        ...judge(queries, schema.indexes),
        shapes: queries.map(({ shape }) => shape),
        scans: await scans(operator().db(name), queries),
      };
    },
  };
}
