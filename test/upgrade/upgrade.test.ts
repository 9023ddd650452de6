import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { BSON, MongoClient } from "mongodb";
import { describe, expect, test } from "vitest";
import { Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { createCaller } from "../e2e/caller.ts";
import { download } from "../e2e/media-world.ts";
import { thisCheckout } from "../support/checkout.ts";
import { describeMongo } from "../support/mongo.ts";
import { until } from "../support/until.ts";
import { type GenmeshProcess, startGenmesh } from "./process.ts";
import {
  adminToken,
  demoKey,
  type Expected,
  startUpstreams,
  type UpgradeUpstreams,
} from "./scenario.ts";

/** Milliseconds from the kill to the start of the new version. The leases of the killed process are over then. */
const downMs = 60_000;
/** Milliseconds for the new version to sweep the work of the killed process. */
const sweepWithinMs = 40_000;

type Store = "sqlite" | "mongodb";

const stateFile = (store: Store, name: string) =>
  fileURLToPath(new URL(`state/${store}.${name}`, import.meta.url));

/** The older version's answers, and this version on its data. */
interface Upgraded extends AsyncDisposable {
  expected: Expected;
  genmesh: GenmeshProcess;
  upstreams: UpgradeUpstreams;
}

async function startOn(store: Store, databaseUrl?: string): Promise<Upgraded> {
  await using stack = new AsyncDisposableStack();
  const expected: Expected = JSON.parse(await readFile(stateFile(store, "json"), "utf8"));
  const folder = await mkdtemp(join(tmpdir(), "genmesh-upgrade-"));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const dataDir = join(folder, "data");
  await mkdir(dataDir, { mode: 0o700 });
  execFileSync("tar", ["-xzf", stateFile(store, "tar.gz"), "-C", dataDir]);
  // A process on MongoDB uses the database's clock. So there the times in the data are moved instead of the clock.
  const aheadMs = expected.madeAt + downMs - Date.now();
  if (databaseUrl) await restore(databaseUrl, expected.madeAt, -aheadMs);
  const upstreams = stack.use(await startUpstreams());
  const catalogFile = join(folder, "catalog.json");
  await upstreams.writeCatalog(catalogFile);
  const genmesh = stack.use(
    await startGenmesh({
      ...{ checkout: thisCheckout, dataDir, catalogFile, adminToken, databaseUrl },
      ...{ apiKey: demoKey, aheadMs: databaseUrl ? 0 : aheadMs },
    }),
  );
  const owned = stack.move();
  return { expected, genmesh, upstreams, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** Puts the dump into a database. Times are moved, except for those of the ledger, whose entries are chained by their content. */
async function restore(databaseUrl: string, madeAt: number, byMs: number): Promise<void> {
  await using client = new MongoClient(databaseUrl);
  const dump = gunzipSync(await readFile(stateFile("mongodb", "jsonl.gz"))).toString();
  for (const line of dump.trim().split("\n")) {
    const { collection } = JSON.parse(line);
    const moved = collection.startsWith("ledger_") ? line : later(line, madeAt, byMs);
    const { document } = BSON.EJSON.parse(moved, { relaxed: false });
    await client.db().collection(collection).insertOne(document);
  }
}

/** Moves numbers that are times between an hour before the kill and 60 days after it. */
function later(line: string, madeAt: number, byMs: number): string {
  return line.replace(/"(\d{13})(\.0)?"/g, (found, digits: string, fraction = "") => {
    const at = Number(digits);
    const isTime = at > madeAt - 3_600_000 && at < madeAt + 60 * 86_400_000;
    return isTime ? `"${at + byMs}${fraction}"` : found;
  });
}

function itFindsEverything(store: Store, urlOf: () => string | undefined) {
  test("finds every balance, key, job, file and idempotent answer", {
    timeout: 240_000,
  }, async () => {
    await using upgraded = await startOn(store, urlOf());
    const { expected, genmesh, upstreams } = upgraded;
    const holding = (key: string) =>
      createCaller({ baseUrl: genmesh.baseUrl, key, accountId: "", keyId: "" }, () => {});
    const demo = holding(demoKey);

    for (const { secret, status } of expected.keys) {
      expect((await holding(secret).get("/models")).status, secret).toBe(status);
    }
    for (const { secret, accountId } of expected.keys) {
      const said = expected.billing[secret];
      if (!said || accountId === expected.accounts[0]?.accountId) continue;
      const { json } = await holding(secret).get("/billing");
      expect(withoutMonth(json)).toEqual(withoutMonth(said));
    }
    for (const { path, body, key, answer } of expected.answers) {
      const asked = await demo.post(path, body, { idempotencyKey: key });
      expect(asked.headers.get("idempotency-replayed"), path).toBe("true");
      expect(atBase(asked.json, genmesh.baseUrl)).toMatchObject(withoutTimes(answer));
      const other = await demo.post(path, { ...body, other: 1 }, { idempotencyKey: key });
      expect(`${other.status} ${other.json.error.code}`).toBe("422 idempotency_key_reused");
    }
    expect(upstreams.text.requests).toEqual([]);
    for (const [path, job] of Object.entries(expected.jobs)) {
      const { json } = await demo.get(path);
      expect(atBase(json, genmesh.baseUrl)).toMatchObject(withoutTimes(job));
    }
    for (const { path, sha256 } of expected.files) {
      const { bytes } = await download(demo, path);
      expect(createHash("sha256").update(bytes).digest("hex"), path).toBe(sha256);
    }

    // The video that was running continues, and the waiting one is begun.
    for (const path of expected.unfinished) {
      await until(
        "a film of the older version",
        async () => {
          const { json } = await demo.get(path);
          if (json.status === "failed") throw new Error(JSON.stringify(json));
          return json.status === "completed";
        },
        { withinMs: sweepWithinMs },
      );
    }
    expect(upstreams.media.seen("POST /videos")).toHaveLength(1);
    expect(upstreams.media.seen("POST /images/edits")).toHaveLength(0);

    // The cut stream is charged for the output up to its last checkpoint.
    const said = expected.billing[demoKey] as {
      availableUsdMicros: number;
      reservedUsdMicros: number;
    };
    const left = await until(
      "the cut stream's settlement",
      async () => {
        const balance = await demo.balance();
        return balance.reserved === 0 ? balance : undefined;
      },
      { withinMs: sweepWithinMs },
    );
    const charged = said.availableUsdMicros - left.available;
    expect(charged).toBeGreaterThan(100);
    expect(charged).toBeLessThanOrEqual(said.reservedUsdMicros);

    // The hold in review can still be ended by the operator.
    const { holdId, amountMicros } = expected.review;
    const second = expected.accounts[1]?.accountId ?? "";
    const { holds } = await genmesh.billing.listHolds({ accountId: second });
    expect(holds.map((hold) => [hold.holdId, String(hold.amount)])).toEqual([
      [holdId, amountMicros],
    ]);
    for (const { accountId, entries } of expected.accounts) {
      const page = await genmesh.billing.listEntries({ accountId, pageSize: 1_000 });
      expect(page.entries.length).toBeGreaterThanOrEqual(entries);
    }
    const findings = [];
    for await (const { finding } of genmesh.billing.auditLedger({})) findings.push(finding.case);
    expect(findings).toEqual(["summary"]);

    // Old keys and balances can be used for new work.
    const { json } = await demo.post("/responses", { model: "chat", input: "after the upgrade" });
    expect(json.status).toBe("completed");
    const operationId = "top-up";
    const amount = 750_000n;
    const again = { accountId: second, unit: Unit.USD_MICROS, amount, operationId };
    await genmesh.billing.grant(again);
    const secret = expected.keys.find(({ accountId }) => accountId === second)?.secret ?? "";
    const balance = await holding(secret).get("/billing");
    expect(withoutMonth(balance.json)).toEqual(withoutMonth(expected.billing[secret]));
  });
}

/** The month's charges belong to the month in which the state was made. */
function withoutMonth(billing: unknown): object {
  const { monthSpendUsdMicros: _, credits, ...rest } = billing as Record<string, object>;
  const { monthSpent: __, ...ours } = credits as Record<string, number>;
  return { ...rest, credits: ours };
}

function atBase(answer: unknown, baseUrl: string): unknown {
  return withoutTimes(JSON.parse(JSON.stringify(answer).replaceAll(baseUrl, "BASE")));
}

/** Without times, which moved with the data. */
function withoutTimes(answer: unknown): object {
  return JSON.parse(JSON.stringify(answer), (name, value) =>
    name === "created_at" || /^\d{4}-\d\d-\d\dT/.test(String(value)) ? undefined : value,
  );
}

test("what processes say to each other stays readable for the older version", () => {
  const older = fileURLToPath(new URL("state/proto.binpb.gz", import.meta.url));
  execFileSync("npx", ["buf", "breaking", "--against", older], { cwd: thisCheckout });
});

describe("an upgrade on SQLite", () => itFindsEverything("sqlite", () => undefined));

await describeMongo("an upgrade on MongoDB", (mongo) => {
  itFindsEverything("mongodb", () => {
    const url = new URL(mongo.url);
    url.pathname = `/${mongo.newName()}`;
    return url.href;
  });
});
