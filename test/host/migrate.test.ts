import { expect, test } from "vitest";
import { describeMongo } from "../support/mongo.ts";
import { runOperatorCommand } from "../support/operator-command.ts";

const run = (databaseUrl: string | undefined, ...words: string[]) =>
  runOperatorCommand(words, { GENMESH_DATABASE_URL: databaseUrl });

await describeMongo("genmesh migrate", (mongo) => {
  const urlOf = (name: string) => {
    const url = new URL(mongo.url);
    url.pathname = `/${name}`;
    return url.href;
  };
  const versionsOf = (name: string) =>
    mongo.raw(name).collection<{ _id: string; version: number }>("schema_version");

  test("brings every component up to date, also twice at once", async () => {
    const name = mongo.newName();
    const both = await Promise.all([
      run(urlOf(name), "migrate", "--json"),
      run(urlOf(name), "migrate", "--json"),
    ]);
    for (const { code, err } of both) expect({ code, err }).toEqual({ code: 0, err: "" });
    const { migrated } = JSON.parse(both[0].out);
    const kept = await versionsOf(name).find().toArray();
    expect(migrated.length).toBeGreaterThan(5);
    expect(new Map(kept.map(({ _id, version }) => [_id, Number(version)]))).toEqual(
      new Map(
        migrated.map((one: { component: string; version: number }) => [one.component, one.version]),
      ),
    );
  });

  test("a newer database: exit 1, one sentence, nothing touched", async () => {
    const name = mongo.newName();
    await versionsOf(name).insertOne({ _id: "media_jobs", version: 99 });
    const { code, out, err } = await run(urlOf(name), "migrate");
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toMatch(
      /^genmesh: the collections of media_jobs were made by a newer genmesh \(version 99, known: \d+\)\n$/,
    );
    expect(await versionsOf(name).countDocuments()).toBe(1);
  });
});

test.each([undefined, "sqlite:x.db"])("a database of %s is none to migrate", async (url) => {
  const { code, err } = await run(url, "migrate");
  expect(code).toBe(1);
  expect(err).toMatch(/^genmesh: GENMESH_DATABASE_URL must be mongodb:/);
});

test("a server that is away is said plainly, without the URL", async () => {
  const { code, err } = await run("mongodb://u:s3cret@127.0.0.1:1/genmesh", "migrate");
  expect(code).toBe(1);
  expect(err).toBe("genmesh: the database of GENMESH_DATABASE_URL does not answer\n");
});
