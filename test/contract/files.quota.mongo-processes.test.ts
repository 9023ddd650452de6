import { join } from "node:path";
import { expect, test } from "vitest";
import { migrate } from "#kit/store/mongo/migrate.ts";
import type { QuotaStore } from "../../services/media/files/quota.ts";
import { createMongoQuota } from "../../services/media/files/quota-mongo.ts";
import { quotaMongoSchema } from "../../services/media/files/quota-mongo-wallet.ts";
import { type Child, children } from "../support/children.ts";
import { describeMongo } from "../support/mongo.ts";
import { auditQuota } from "./files.quota.mongo-audit.ts";

const script = join(import.meta.dirname, "files.quota.mongo-child.ts");
const accountId = "acct_race";
const t0 = Date.UTC(2026, 0, 15, 12);

/** A line of a child about a charge. */
interface Said {
  chargeId: string;
  state: "begun" | "full" | "used" | "going" | "released";
  bytes?: number;
}

await describeMongo("a quota that several processes share", (mongo) => {
  const start = children();

  async function newQuota(): Promise<{ quota: QuotaStore; name: string; url: string }> {
    const name = mongo.newName();
    const db = mongo.connect(name);
    await migrate(db, [quotaMongoSchema]);
    const url = new URL(mongo.url);
    url.pathname = `/${name}`;
    return { quota: createMongoQuota(db), name, url: url.href };
  }

  async function startPair(
    what: string,
    url: string,
    limit: number,
    round = 1,
  ): Promise<[Child, Child]> {
    const pair: [Child, Child] = [
      start(script, what, url, `one${round}`, `${limit}`),
      start(script, what, url, `two${round}`, `${limit}`),
    ];
    for (const child of pair) expect(await child.next()).toBe("ready");
    for (const child of pair) child.go();
    return pair;
  }

  test("of all who race for the last bytes exactly those get them that fit", async () => {
    const { quota, name, url } = await newQuota();
    await quota.reserve({ accountId, chargeId: "first" }, 500, 80_999);
    const pair = await startPair("grab", url, 80_999);
    const got = await Promise.all(pair.map(async ({ next }) => JSON.parse(await next())));
    expect(got.flat()).toHaveLength(80);
    expect(await quota.usage(accountId)).toEqual({
      usedBytes: 0,
      reservedBytes: 80_500,
      keptBytes: 0,
    });
    const { told, counted } = await auditQuota(mongo.raw(name), accountId);
    expect(counted).toEqual(told);
  });

  test("storing and deleting at once: never above the limit, and in the end what is left", async () => {
    const { quota, name, url } = await newQuota();
    const limit = 12_000;
    const pair = await startPair("live", url, limit);
    const heard = Promise.all(pair.map(saidBy));
    let isOver = false;
    const over = () => {
      isOver = true;
    };
    heard.then(over, over);
    let most = 0;
    while (!isOver) {
      const { usedBytes, reservedBytes } = await quota.usage(accountId);
      most = Math.max(most, usedBytes + reservedBytes);
    }
    const lines = (await heard).flat();
    expect(most).toBeLessThanOrEqual(limit);
    expect(lines.filter(({ state }) => state === "full").length).toBeGreaterThan(0);
    const { told, counted } = await auditQuota(mongo.raw(name), accountId);
    expect(counted).toEqual(told);
    expect(told).toEqual({ usedBytes: keptBytes(lines), reservedBytes: 0, keptBytes: 0 });
  });

  test("killed in the middle: what was acknowledged holds, and nothing leaks", async () => {
    const { quota, name, url } = await newQuota();
    const limit = 10_000_000;
    const said: Said[] = [];
    for (const [round, counts] of [[50, 90] as const, [37, 61] as const].entries()) {
      const pair = await startPair("for ever", url, limit, round);
      const lines = await Promise.all(pair.map((child, i) => killedAfter(child, counts[i] ?? 0)));
      said.push(...lines.flat());
      const { told, counted } = await auditQuota(mongo.raw(name), accountId);
      expect(counted).toEqual(told);
    }
    const last = [...new Map(said.map((line) => [line.chargeId, line.state]))];
    await Promise.all(
      last.map(async ([chargeId, state]) => {
        const charge = { accountId, chargeId };
        if (state === "used") expect(await quota.commit(charge)).toBe(true);
        if (state === "released") expect(await quota.reserve(charge, 1, limit)).toBe("released");
      }),
    );
    // A sweep ends the charges of dead processes.
    await Promise.all(last.map(([chargeId]) => quota.release({ accountId, chargeId }, t0)));
    expect(await quota.usage(accountId)).toEqual({ usedBytes: 0, reservedBytes: 0, keptBytes: 0 });
    const { told, counted } = await auditQuota(mongo.raw(name), accountId);
    expect(counted).toEqual(told);
  });
});

/** All lines of a child until its end. */
async function saidBy(child: Child): Promise<Said[]> {
  const said: Said[] = [];
  for await (const line of child.lines) {
    if (line === `"end"`) return said;
    said.push(JSON.parse(line));
  }
  throw new Error("the child ended before its end");
}

async function killedAfter(child: Child, count: number): Promise<Said[]> {
  const said: Said[] = [];
  for await (const line of child.lines) {
    if (!line.endsWith("}")) continue;
    said.push(JSON.parse(line));
    if (said.length === count) child.process.kill("SIGKILL");
  }
  expect(said.length, "the child ended by itself").toBeGreaterThanOrEqual(count);
  return said;
}

function keptBytes(lines: readonly Said[]): number {
  const released = new Set(
    lines.filter(({ state }) => state === "released").map(({ chargeId }) => chargeId),
  );
  return lines
    .filter(({ state, chargeId }) => state === "used" && !released.has(chargeId))
    .reduce((sum, { bytes = 0 }) => sum + bytes, 0);
}
