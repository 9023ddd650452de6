import { randomBytes } from "node:crypto";
import { MongoClient } from "mongodb";
import { afterAll, afterEach } from "vitest";
import { type MongoDatabase, type MongoOptions, openMongo } from "#kit/mongo/connect.ts";

/** Databases of one test file on one server. */
export interface MongoTests {
  /** A name that nobody has, in the test's own database after the test. */
  newName(): string;
  /** A client of its own, closed after the test. */
  connect(name: string, options?: Partial<MongoOptions>): MongoDatabase;
  /** The server itself, for looking at what was stored and for tampering with it. */
  raw(name: string): ReturnType<MongoClient["db"]>;
}

/** Sets up databases for the tests of a file; what a test made is dropped after it. */
export function mongoTests(url: string): MongoTests {
  const names: string[] = [];
  const clients: MongoDatabase[] = [];
  const operator = new MongoClient(url, { useBigInt64: true });
  afterEach(async () => {
    for (const client of clients.splice(0)) await client[Symbol.asyncDispose]();
    for (const name of names.splice(0)) await operator.db(name).dropDatabase();
  });
  afterAll(() => operator.close());
  return {
    newName() {
      const name = `genmesh_test_${randomBytes(6).toString("hex")}`;
      names.push(name);
      return name;
    },
    connect(name, options = {}) {
      const client = openMongo({ url, name, ...options });
      clients.push(client);
      return client;
    },
    raw: (name) => operator.db(name),
  };
}
