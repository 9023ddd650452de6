import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, describe, expect, test } from "vitest";
import { createWorkshop } from "#kit/threads/workshop.ts";
import { createTokenCounter } from "../../services/text/tokens/count.ts";
import { startScriptedUpstream } from "../support/scripted-upstream.ts";
import { until } from "../support/until.ts";
import { testCatalog } from "./catalog.ts";
import { type HostProcess, openingUsdMicros, startProcess } from "./process.ts";
import { ownWorldOnly } from "./world.ts";

ownWorldOnly();
const upstream = await startScriptedUpstream();
const folder = await mkdtemp(join(tmpdir(), "genmesh-crash-"));
const catalogFile = join(folder, "catalog.yaml");
const { baseUrl: main } = upstream;
await writeFile(catalogFile, JSON.stringify(testCatalog({ main, backup: main, nowhere: main })));
let running: HostProcess | undefined;
afterAll(async () => {
  await running?.kill();
  await upstream.close();
  await rm(folder, { recursive: true });
});

const body = { model: "scripted", input: "Hi" };
/** Longer than the lease of a dead process's requests (30 s), plus some rounds of the sweep. */
const leaseOverMs = 40_000;

const start = async (dataDir: string, aheadMs = 0) => {
  running = await startProcess({ dataDir, catalogFile, aheadMs });
  return Object.assign(running, { dataDir });
};
let worlds = 0;
const newDataDir = () => join(folder, `${++worlds}`);

/** Are both requests counted, and one of them with this number of output tokens? */
function writtenDown(dataDir: string, outputTokens: number): boolean {
  using db = new DatabaseSync(join(dataDir, "genmesh.sqlite"), { readOnly: true });
  const rows = db
    .prepare(
      "SELECT output_tokens AS output FROM text_usage WHERE status = 'open' AND input_tokens > 0",
    )
    .all();
  return rows.length === 2 && rows.some(({ output }) => output === outputTokens);
}

/** The ledger adds up, and no hold is left. */
async function expectInOrder({ billing, caller }: HostProcess): Promise<void> {
  const { available, reserved, spendable, monthSpend } = await caller.balance();
  expect({ reserved, spendable }).toEqual({ reserved: 0, spendable: available });
  expect(monthSpend).toBe(openingUsdMicros - available);
  const findings = [];
  for await (const { finding } of billing.auditLedger({})) findings.push(finding);
  expect(findings.map(({ case: kind }) => kind)).toEqual(["summary"]);
  const { holds } = await billing.listHolds({});
  expect(holds).toEqual([]);
}

describe("kill -9", () => {
  test("mid-stream: each request is charged as promised, once its lease is over", async () => {
    const deltas = Array<string>(8).fill(" the sea is wide and blue and so is the sky");
    upstream.script((seen) => {
      if (seen.body.metadata?.hang !== "yes") return { kind: "ok" };
      return seen.body.stream
        ? { kind: "ok", deltas, usage: null, break: { how: "hang", after: 8 } }
        : { kind: "hang" };
    });
    const hanging = { ...body, metadata: { hang: "yes" } };
    const dataDir = newDataDir();
    const first = await start(dataDir);
    const whole = await first.caller.post("/responses", body, { idempotencyKey: "whole" });
    expect(whole.status).toBe(200);

    const stream = await first.caller.open("/responses", hanging, { idempotencyKey: "cut" });
    for (let seen = 0; seen < deltas.length; ) {
      if ((await stream.next())?.name === "response.output_text.delta") seen++;
    }
    const json = first.caller.post("/responses", hanging).catch((error: Error) => error.name);
    await upstream.request(3);
    const before = await first.caller.balance();
    expect(before).toMatchObject({ available: openingUsdMicros - 30 });
    expect(before.reserved).toBeGreaterThan(8_000);
    const output = 4 * (await createTokenCounter(createWorkshop()).count([deltas.join("")]));
    await until("checkpoints with all of it", () => writtenDown(first.dataDir, output / 4), {
      withinMs: 60_000,
    });
    await first.kill();
    await expect(stream.rest()).rejects.toThrow();
    expect(await json).toBe("TypeError");

    // At once the balance is as before, and the complete answer is replayed.
    const second = await start(dataDir);
    expect(await second.caller.balance()).toEqual(before);
    const calls = upstream.requests.length;
    const replay = await second.caller.post("/responses", body, { idempotencyKey: "whole" });
    expect(replay.text).toBe(whole.text);
    expect(replay.headers.get("idempotency-replayed")).toBe("true");
    expect(upstream.requests).toHaveLength(calls);
    await second.kill();

    const third = await start(dataDir, leaseOverMs);
    await until("the holds' ends", async () => (await third.caller.balance()).reserved === 0, {
      withinMs: 60_000,
    });
    const lost = (await third.caller.balance()).monthSpend - 30;
    const input = await inputCost(third, hanging);
    expect(lost).toBe(2 * input + output);

    // Its key is free, so the same request runs once more.
    upstream.script({ kind: "ok" });
    const again = await third.caller.post("/responses", hanging, { idempotencyKey: "cut" });
    expect(again.status).toBe(200);
    expect(again.headers.get("idempotency-replayed")).toBeNull();
    expect((await third.caller.balance()).monthSpend).toBe(30 + lost + input + 4 + 30);
    await expectInOrder(third);
    expect(await third.stop()).toBe(0);
  });

  test("at any moment among many requests: nothing is lost, and nothing charged twice", async () => {
    upstream.script({ kind: "ok", firstByteDelayMs: 5, deltaDelayMs: 3 });
    const dataDir = newDataDir();
    const names = Array.from({ length: 60 }, (_, index) => `many-${index}`);
    const askAll = ({ caller }: HostProcess) =>
      names.map((idempotencyKey, index) =>
        caller
          .post("/responses", { ...body, stream: index % 2 === 0 }, { idempotencyKey })
          .then(({ status }) => status)
          .catch(() => 0),
      );
    let aheadMs = 0;
    for (const killAt of [3, 25]) {
      const host = await start(dataDir, aheadMs);
      const { length } = upstream.requests;
      const asked = askAll(host);
      await upstream.request(length + killAt);
      await host.kill();
      await Promise.all(asked);
      aheadMs += leaseOverMs;
    }
    const last = await start(dataDir, aheadMs);
    const isSettled = async () => (await last.caller.balance()).reserved === 0;
    await until("the holds' ends", isSettled, { withinMs: 60_000 });
    const killed = (await last.caller.balance()).monthSpend;
    const statuses = await Promise.all(askAll(last));
    expect(new Set(statuses)).toEqual(new Set([200]));
    await expectInOrder(last);
    // Callers that had their answer before were charged before. The others are charged now.
    const now = (await last.caller.balance()).monthSpend - killed;
    expect(now % 30).toBe(0);
    expect(now).toBeLessThanOrEqual(60 * 30);
    const again = await Promise.all(askAll(last));
    expect(new Set(again)).toEqual(new Set([200]));
    expect((await last.caller.balance()).monthSpend).toBe(killed + now);
    expect(await last.stop()).toBe(0);
  });
});

/** The counted cost of a request's input. It is the cost of a complete answer of one token without usage, less that token. */
async function inputCost({ caller }: HostProcess, asked: object): Promise<number> {
  const { monthSpend } = await caller.balance();
  upstream.script({ kind: "ok", deltas: [" word"], usage: null });
  await caller.post("/responses", asked);
  return (await caller.balance()).monthSpend - monthSpend - 4;
}
