import { once } from "node:events";
import { openMongo } from "#kit/store/mongo/connect.ts";
import { createMongoAuthStore } from "../../services/auth/store-mongo.ts";
import type { Intent } from "../../services/text/store/store.ts";
import { createMongoUsageStore } from "../../services/text/store/store-mongo.ts";

const now = Date.UTC(2026, 0, 15);
/** Racers of one process. */
const racers = 20;

/** The races of processes. Each answers the results of its racers. */
const races: Record<string, (url: string, process: number) => Promise<string[]>> = {
  async slot(url, process) {
    const store = createMongoUsageStore(openMongo({ url }));
    return all(async (i) => {
      const requestId = `text_${process}_${String(i).padStart(4, "0")}`;
      return (await store.open(intentOf(requestId))) ? requestId : "taken";
    });
  },
  async account(url, process) {
    const store = createMongoAuthStore(openMongo({ url }));
    return all(async (i) => {
      const id = `${process}_${i}`;
      const { account } = await store.createAccount({
        account: { accountId: `acct_${id}`, name: "a", createdAtMs: now, requestsPerMinute: 1 },
        key: {
          keyId: `key_${id}`,
          accountId: `acct_${id}`,
          secret: { sha256: Buffer.from(id.padStart(32, "0")), hint: id },
          scopes: [],
          allowedModels: [],
          createdAtMs: now,
          requestsPerMinute: 1,
        },
        operationId: "op",
        secretBrought: false,
      });
      return account.accountId;
    });
  },
};

function all(one: (i: number) => Promise<string>): Promise<string[]> {
  return Promise.all(Array.from({ length: racers }, (_, i) => one(i)));
}

function intentOf(requestId: string): Intent {
  return {
    requestId,
    accountId: "acct_1",
    keyId: "key_1",
    operation: "responses",
    modelId: "chat-1",
    catalogVersion: "v1",
    price: { input: 1n, cachedInput: 1n, output: 1n },
    bounds: { input: 1, output: 1 },
    holdAmount: 1n,
    holdCheckAt: now,
    inputTokens: 1,
    outputTokens: 0,
    owner: "text_me",
    openedAt: now,
    leaseUntil: now,
    idempotency: { key: "k", fingerprint: "f" },
  };
}

const [, , race = "", url = "", number = ""] = process.argv;
process.stdout.write("ready\n");
await once(process.stdin, "data");
process.stdout.write(`${JSON.stringify(await races[race]?.(url, Number(number)))}\n`);
process.exit(0);
