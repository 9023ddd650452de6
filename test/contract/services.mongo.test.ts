import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { HoldKind, Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { describeMongo } from "../support/mongo.ts";
import { until } from "../support/until.ts";
import { createAuthWorld } from "./keys.world.ts";
import { billingWorld } from "./ledger.world.ts";

await describeMongo("services on MongoDB", (mongo) => {
  const database = (name: string) => ({ kind: "mongodb", mongo: mongo.connect(name) }) as const;

  test("two billing replicas: one wallet, and either ends what is due", async () => {
    const name = mongo.newName();
    await using first = await billingWorld(database(name));
    await using second = await billingWorld(database(name));
    const wallet = { accountId: "acct_a", unit: Unit.USD_MICROS };
    await first.operator.grant({ ...wallet, amount: 100n, operationId: "op-1" });
    const checkTime = timestampFromMs(first.clock.now() + 5_000);
    const hold = { ...wallet, kind: HoldKind.TEXT, keyId: "key_a", ref: "r", checkTime };
    await first.billing.reserve({ ...hold, holdId: "hold_aaa", amount: 60n });
    await expect(
      second.billing.reserve({ ...hold, holdId: "hold_bbb", amount: 60n }),
    ).rejects.toMatchObject({ reason: ErrorReason.INSUFFICIENT_BALANCE });
    second.owners.text = () => ({ case: "settleAmount", value: 25n });
    const balance = async () => (await first.billing.getBalance({ accountId: "acct_a" })).usdMicros;
    await until("the owner's verdict", async () => {
      await second.clock.advance(1_000);
      return (await balance())?.reserved === 0n;
    });
    expect(await balance()).toMatchObject({ spendable: 75n, spent: 25n, monthSpent: 25n });
    expect(second.owners.asked).toEqual(["text hold_aaa"]);
    const { entries } = await second.operator.listEntries({ accountId: "acct_a" });
    expect(entries).toHaveLength(3);
    for await (const { finding } of second.operator.auditLedger({ accountId: "" })) {
      expect(finding.case).not.toBe("difference");
    }
  });

  test("two auth replicas: what one revokes, the watchers of the other hear", async () => {
    const name = mongo.newName();
    await using first = await createAuthWorld(database(name));
    await using second = await createAuthWorld(database(name));
    const { key, secret } = await first.admin.createAccount({ name: "n" });
    const keyId = key?.keyId ?? "";
    const leave = new AbortController();
    const heard: string[] = [];
    let messages = 0;
    const watching = (async () => {
      for await (const { changedKeyIds } of second.mesh.watchKeys({}, { signal: leave.signal })) {
        heard.push(...changedKeyIds);
        messages++;
      }
    })().catch(() => undefined);
    // The first message shows where the watch begins. It does not report earlier changes.
    await until("the watch's first message", () => messages > 0);
    await first.admin.revokeKey({ keyId });
    await until("the news", async () => {
      await second.clock.advance(250);
      return heard.includes(keyId);
    });
    expect(secret).toMatch(/^gm_/);
    leave.abort();
    await watching;
  });
});
