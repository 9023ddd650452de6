import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { createMongoAuthStore } from "../../services/auth/store-mongo.ts";
import { createMongoUsageStore } from "../../services/text/store/store-mongo.ts";
import { children } from "../support/children.ts";
import { describeMongo } from "../support/mongo.ts";

const script = join(import.meta.dirname, "stores.mongo-child.ts");

await describeMongo("two processes that want the same", (mongo) => {
  const start = children();
  let url: string;

  beforeEach(async () => {
    const name = mongo.newName();
    const db = mongo.connect(name);
    await createMongoAuthStore(db).open();
    await createMongoUsageStore(db).prepare();
    const own = new URL(mongo.url);
    own.pathname = `/${name}`;
    url = own.href;
  });

  async function race(what: string): Promise<string[][]> {
    const pair = [start(script, what, url, "1"), start(script, what, url, "2")];
    for (const child of pair) expect(await child.next()).toBe("ready");
    for (const child of pair) child.go();
    return Promise.all(pair.map(async (child) => JSON.parse(await child.next())));
  }

  test("of all intents under one idempotency key one is opened", async () => {
    const opened = (await race("slot")).flat().filter((one) => one !== "taken");
    expect(opened).toHaveLength(1);
  });

  test("an operation id makes one account, and all hear of it", async () => {
    const [first, second] = await race("account");
    expect(new Set([...(first ?? []), ...(second ?? [])]).size).toBe(1);
    expect(first).toHaveLength(20);
  });
});
