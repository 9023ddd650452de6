import { describeMongo } from "../support/mongo.ts";
import { worldDatabases } from "./jobs.database.ts";

await describeMongo("media on MongoDB", async (mongo) => {
  worldDatabases.many = 200;
  const names = new Map<string, string>();
  worldDatabases.open = (folder) => {
    const name = names.get(folder) ?? mongo.newName();
    names.set(folder, name);
    const database = { kind: "mongodb", mongo: mongo.connect(name) } as const;
    return { database, [Symbol.asyncDispose]: () => database.mongo[Symbol.asyncDispose]() };
  };
  // What these promise of the services they promise whatever the database is.
  await import("./jobs.submit.test.ts");
  await import("./jobs.races.test.ts");
  await import("./jobs.worker.test.ts");
});
