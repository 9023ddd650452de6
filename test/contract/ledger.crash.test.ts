import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openSqlite } from "#kit/store/sqlite.ts";
import { auditWallet } from "../../services/billing/ledger/audit.ts";
import { createSqliteLedger } from "../../services/billing/ledger/store-sqlite.ts";
import { type Acknowledged, revive } from "./ledger.crash-child.ts";
import { say } from "./ledger.model.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "genmesh-crash-"));
});
afterEach(() => rm(folder, { recursive: true }));

test("killed in the middle, again and again: what was acknowledged is there, and all adds up", {
  timeout: 240_000,
}, async () => {
  const file = join(folder, "ledger.db");
  const acknowledged: Acknowledged[] = [];
  for (let round = 0; round < 4; round++) {
    const lines = await killedAfter(file, `${round}`, 150 + round * 77);
    acknowledged.push(...lines);
    await expectSound(file, acknowledged);
  }
  expect(acknowledged.length).toBeGreaterThan(1_000);
});

/** Lets a process work on the file, kills it (SIGKILL) after `count` lines, and gives all its lines. */
async function killedAfter(file: string, round: string, count: number): Promise<Acknowledged[]> {
  const script = join(import.meta.dirname, "ledger.crash-child.ts");
  const child = spawn(process.execPath, [script, file, round], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const lines: Acknowledged[] = [];
  let cut = "";
  for await (const line of createInterface({ input: child.stdout })) {
    cut = line;
    if (!line.endsWith("}")) continue;
    lines.push(JSON.parse(line) as Acknowledged);
    if (lines.length === count) child.kill("SIGKILL");
  }
  expect(child.killed, `the child ended by itself: ${cut}`).toBe(true);
  return lines;
}

async function expectSound(file: string, acknowledged: Acknowledged[]): Promise<void> {
  using db = openSqlite(file);
  const store = createSqliteLedger(db);
  await store.open();
  const count = { entries: 0 };
  for await (const snapshot of store.snapshots(undefined)) {
    for await (const found of auditWallet(snapshot, count)) expect(found).toBeUndefined();
  }
  expect(count.entries).toBeGreaterThanOrEqual(acknowledged.length);
  // Repeating each of them has the same result, and changes nothing.
  for (const { accountId, operation, outcome } of acknowledged) {
    const [again] = await store.apply({ accountId, unit: "credits" }, [revive(operation)], 0);
    const first =
      operation.kind === "reserve"
        ? new RegExp(`^(open|settled|released) ${outcome.split(" ")[1]}, again$`)
        : `${outcome}, again`;
    expect(say(again)).toMatch(first);
  }
  const after = { entries: 0 };
  for await (const snapshot of store.snapshots(undefined)) {
    for await (const found of auditWallet(snapshot, after)) expect(found).toBeUndefined();
  }
  expect(after).toEqual(count);
}
