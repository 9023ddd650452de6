import { beforeEach, expect, test } from "vitest";
import type { MongoDatabase } from "#kit/store/mongo/connect.ts";
import { indexStep, type MongoSchema, type MongoStep, migrate } from "#kit/store/mongo/migrate.ts";
import { authMongoSchema } from "../../services/auth/index.ts";
import { ledgerMongoSchema } from "../../services/billing/index.ts";
import { textMongoSchema } from "../../services/text/index.ts";
import { describeMongo } from "../support/mongo.ts";

await describeMongo("migrating a MongoDB database", (mongo) => {
  let name: string;
  let db: MongoDatabase;
  let second: MongoDatabase;
  let ran: string[];

  beforeEach(() => {
    name = mongo.newName();
    db = mongo.connect(name);
    second = mongo.connect(name);
    ran = [];
  });

  const step =
    (label: string): MongoStep =>
    async (on) => {
      ran.push(label);
      await on.collection("thing").updateMany({}, { $set: { [label]: true } });
    };
  const schema = (steps: MongoStep[]): MongoSchema => ({
    component: "things",
    indexes: { thing: [{ name: "age", key: { age: 1, _id: -1 }, unique: true }] },
    steps,
  });

  test("makes each step once, in order, and goes on where it was left", async () => {
    await migrate(db, [schema([step("one"), step("two")])]);
    await db.collection("thing").insertOne({ age: 1 });
    await migrate(second, [schema([step("one"), step("two"), step("three")])]);
    await migrate(db, [schema([step("one"), step("two"), step("three")])]);
    expect(ran).toEqual(["one", "two", "three"]);
    expect(await version()).toBe(3);
    const left = await mongo
      .raw(name)
      .collection("thing")
      .findOne({}, { projection: { _id: 0 } });
    expect(left).toEqual({ age: 1, three: true });
  });

  test("a newer schema is refused, and nothing is touched", async () => {
    await migrate(db, [schema([step("one"), step("two")])]);
    const older = schema([step("one")]);
    const fresh: MongoSchema = { component: "fresh", indexes: {}, steps: [step("fresh")] };
    await expect(migrate(db, [fresh, older])).rejects.toThrow(
      "the collections of things were made by a newer genmesh (version 2, known: 1)",
    );
    expect(ran).toEqual(["one", "two"]);
    expect(await version("fresh")).toBeUndefined();
  });

  test("replicas that start at the same time end alike", async () => {
    const schemas = [ledgerMongoSchema, authMongoSchema, textMongoSchema];
    const replicas = Array.from({ length: 4 }, () => mongo.connect(name));
    await Promise.all(replicas.map((one) => migrate(one, schemas)));
    for (const { component, steps } of schemas) {
      expect(await version(component)).toBe(steps.length);
    }
    const revisions = await mongo.raw(name).collection("auth_revision").find().toArray();
    expect(revisions).toEqual([{ _id: "revision", last: 1n, pending: [] }]);
  });

  test("a replica that is overtaken between two steps does not fall back", async () => {
    const overtaken: MongoStep = async (on) => {
      ran.push("slow");
      if (ran.length === 1) await migrate(second, [schema([overtaken, step("two")])]);
      await on.collection("thing").findOne({});
    };
    await migrate(db, [schema([overtaken, step("two")])]);
    expect(ran).toEqual(["slow", "slow", "two"]);
    expect(await version()).toBe(2);
  });

  test("a step that failed is made again at the next start", async () => {
    let fails = true;
    const failing: MongoStep = async () => {
      if (fails) throw new Error("power cut");
    };
    const steps = [step("one"), failing, step("three")];
    await expect(migrate(db, [schema(steps)])).rejects.toThrow("power cut");
    expect(await version()).toBe(1);
    fails = false;
    await migrate(db, [schema(steps)]);
    expect(ran).toEqual(["one", "three"]);
    expect(await version()).toBe(3);
  });

  test("indexes are as declared, also where one was lost", async () => {
    const declared = schema([indexStep({})]);
    await migrate(db, [declared]);
    await mongo.raw(name).collection("thing").dropIndex("age");
    await migrate(db, [declared]);
    const [, age] = await mongo.raw(name).collection("thing").indexes();
    expect(age).toMatchObject({ name: "age", key: { age: 1, _id: -1 }, unique: true });
    const thing = db.collection<{ _id: string; age: number }>("thing");
    await thing.insertMany([{ _id: "a", age: 1 }]);
  });

  async function version(component = "things"): Promise<unknown> {
    const versions = mongo.raw(name).collection<{ _id: string; version: number }>("schema_version");
    return (await versions.findOne({ _id: component }))?.version;
  }
});
