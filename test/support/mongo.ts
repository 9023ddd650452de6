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
  /** A database of its own; dropped after the test. */
  newName(): string;
  /** A client of its own, closed after the test. */
  connect(name: string, options?: Partial<MongoOptions>): MongoDatabase;
  /** The server itself, for looking at what was stored and for tampering with it. */
  raw(name: string): ReturnType<MongoClient["db"]>;
  /**
   * Holds all queries that went through {@link connect} in this file against a schema: shapes that no index serves,
   * indexes that no query needs, and, where the server shows MongoDB's own plans, queries that it answers by a scan.
   */
  judgeQueries(schema: MongoSchema): Promise<Verdict>;
}

export interface Verdict {
  shapes: string[];
  unserved: string[];
  unused: string[];
  scans: string[];
}

/** How tests use their databases. */
export interface DatabaseUse {
  /**
   * One after the other, with the indexes of the first: for tests of one schema that await all they send. Default: each test makes its own,
   * which takes a second and more.
   */
  inTurn?: boolean;
}

/** Tests on a MongoDB server, or nothing but a word of why not. */
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
