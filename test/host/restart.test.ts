import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { until } from "../support/until.ts";
import { operatorOf } from "./operator.ts";
import { type RunningMesh, startRunning, tempFolder } from "./process.ts";

test("kill -9 at any time and start again: accounts, keys, balances and tokens are as they were", async () => {
  await using folder = await tempFolder();
  const env = { GENMESH_DATA_DIR: folder.path };
  const before: Record<string, unknown> = {};
  const keys: string[] = [];
  let revoked = "";
  {
    await using mesh = await startRunning(env);
    const operator = await operatorOf(mesh, folder.path);
    const { account, key, secret } = await operator.auth.createAccount({ name: "kept" });
    const accountId = account?.accountId ?? "";
    const amount = 5_000_000n;
    await operator.billing.grant({ accountId, unit: Unit.USD_MICROS, amount, operationId: "g" });
    const second = await operator.auth.createKey({ accountId });
    revoked = second.secret;
    await operator.auth.revokeKey({ keyId: second.key?.keyId ?? "" });
    const rotated = await operator.auth.rotateKey({ keyId: key?.keyId ?? "" });
    keys.push(mesh.bannerKey ?? "", secret, rotated.secret);
    for (const one of keys) {
      const answer = await ask(mesh, one, "/responses", { model: "chat-mini", input: "Say kept" });
      expect(answer.status).toBe(200);
    }
    // An answer may be sent before it is settled.
    for (const one of keys) {
      before[one] = await until("its settlement", async () => {
        const is = await balance(mesh, one);
        return is.reservedUsdMicros === 0 ? is : undefined;
      });
    }
    expect(before[secret]).not.toMatchObject({ availableUsdMicros: 5_000_000 });
    before.token = await readFile(join(folder.path, "admin-token"), "utf8");
    // In the middle of work: a stream is open.
    const open = await ask(mesh, secret, "/responses", {
      model: "chat-mini",
      input: "Tell me a story.",
      stream: true,
    });
    expect(open.status).toBe(200);
    mesh.kill("SIGKILL");
    expect(await mesh.ended).toEqual({ code: null, signal: "SIGKILL" });
    await open.text().catch(() => {});
  }
  await using again = await startRunning(env);
  expect(again.bannerKey).toBeUndefined();
  expect(await readFile(join(folder.path, "admin-token"), "utf8")).toBe(before.token);
  for (const one of keys) {
    const [was, is] = [before[one], await balance(again, one)] as [Balance, Balance];
    // The hold of the cut stream stays until its lease ends. Nothing was charged and nothing was lost.
    expect(is.availableUsdMicros).toBe(was.availableUsdMicros);
    expect(is.monthSpendUsdMicros).toBe(was.monthSpendUsdMicros);
    expect(is.spendableUsdMicros).toBe(is.availableUsdMicros - is.reservedUsdMicros);
  }
  expect((await ask(again, revoked, "/billing")).status).toBe(401);
  const operator = await operatorOf(again, folder.path);
  const { accounts } = await operator.auth.listAccounts({});
  expect(accounts.map((one) => one.name)).toEqual(["demo", "kept"]);
  for await (const { finding } of operator.billing.auditLedger({})) {
    expect(finding.case).toBe("summary");
  }
});

interface Balance {
  availableUsdMicros: number;
  reservedUsdMicros: number;
  spendableUsdMicros: number;
  monthSpendUsdMicros: number;
}

async function balance(mesh: RunningMesh, key: string): Promise<Balance> {
  const answer = await ask(mesh, key, "/billing");
  expect(answer.status).toBe(200);
  return (await answer.json()) as Balance;
}

function ask(mesh: RunningMesh, key: string, path: string, body?: object): Promise<Response> {
  return fetch(mesh.baseUrl + path, {
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    ...(body ? { method: "POST", body: JSON.stringify(body) } : {}),
  });
}
