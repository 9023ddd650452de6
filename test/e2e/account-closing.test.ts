import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, describe, expect, test } from "vitest";
import { closingLeastMs, driveClosing } from "#common/agreements/account-closing.ts";
import type { Peers } from "#common/agreements/peers.ts";
import { EntryKind, HoldKind, Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { until } from "../support/until.ts";
import { refusalOf } from "./caller.ts";
import { ended, startMediaWorld, submit, upload } from "./media-world.ts";
import { ownWorldOnly } from "./world.ts";

const { world, png, ...owned } = await startMediaWorld();
afterAll(() => owned[Symbol.asyncDispose]());
ownWorldOnly();

const { auth, billing, media, text } = world.admin;
const body = { model: "scripted", input: "Hi" };
const notFound = expect.objectContaining({ message: expect.stringContaining("no such job") });

/** Peers for a process that is gone right after its `n`-th call succeeded. */
function dying(n: number): Pick<Peers, "auth" | "billing" | "text" | "media"> {
  let calls = 0;
  const wrap = <T extends object>(client: T): T =>
    new Proxy(client, {
      get(target, name) {
        const method = Reflect.get(target, name);
        if (typeof method !== "function") return method;
        return async (...args: unknown[]) => {
          const answer = await method.apply(target, args);
          if (++calls === n) throw new Error(`died after call ${n}`);
          return answer;
        };
      },
    });
  const peers = { auth: wrap(auth), billing: wrap(billing), text: wrap(text), media: wrap(media) };
  // The clients of the tests are like those of a process, except for the errors that they reject with.
  return peers as unknown as Pick<Peers, "auth" | "billing" | "text" | "media">;
}

describe("a closed account", () => {
  test("ends its keys within a second; what runs is charged; names, prompts and files go, the ledger stays", async () => {
    const caller = await world.caller({ credits: 10n });
    const { accountId } = caller;
    const named = await auth.createKey({ accountId, name: "of Ada Lovelace" });
    const neighbour = await world.caller();
    const kept = await upload(neighbour, png);
    await upload(caller, png);
    const job = await submit(caller, "images", { model: "small-image", prompt: "a secret wish" });
    expect((await ended(caller, job)).status).toBe("completed");
    expect((await caller.post("/responses", body, { idempotencyKey: "k" })).status).toBe(200);
    world.play({ kind: "ok", deltaDelayMs: 300 });
    const stream = await caller.open("/responses", body);
    await stream.until(({ name }) => name === "response.output_text.delta");

    const { account } = await auth.closeAccount({ accountId });
    expect([account?.name, account?.closeTime]).toEqual(["", undefined]);
    await until("the end of its keys", async () => (await caller.get("/models")).status === 401, {
      withinMs: 60_000,
    });
    expect(refusalOf(await world.holding(named.secret).get("/models"))).toContain("401");
    const conflict = /closed, or being closed/;
    await expect(auth.setAccountState({ accountId, suspended: false })).rejects.toThrow(conflict);
    await expect(auth.createKey({ accountId })).rejects.toThrow(conflict);
    expect((await stream.rest()).at(-2)?.name).toBe("response.completed");

    // The process ends at each step in turn, and the next one continues.
    const { keys } = await auth.listKeys({ accountId });
    const keyIds = keys.map(({ keyId }) => keyId);
    expect(keys.map((key) => [key.name, key.revokeTime !== undefined])).toEqual([
      ["", true],
      ["", true],
    ]);
    const drive = (n: number) => driveClosing({ account, keyIds }, dying(n), world);
    let deaths = 0;
    for (; ; deaths++) {
      const end = await drive(deaths + 1).then(() => "done", String);
      if (end === "done") break;
      expect(end).toContain("died after call");
    }
    expect(deaths).toBeGreaterThanOrEqual(4);
    await expect(media.inspectJob({ jobId: job.id })).rejects.toEqual(notFound);
    expect(await media.eraseAccount({ accountId, keyIds })).toMatchObject({ isOver: true });
    expect(await text.eraseAccount({ accountId, keyIds })).toMatchObject({ isOver: true });
    expect((await auth.getAccount({ accountId })).account?.closeTime).toBeUndefined();
    // The neighbour's data are unchanged.
    expect((await neighbour.get(`/files/${kept.json.id}`)).status).toBe(200);

    await world.later(closingLeastMs);
    await until(
      "the end of the closing",
      async () => (await auth.getAccount({ accountId })).account?.closeTime !== undefined,
      { withinMs: 60_000 },
    );
    expect((await auth.listClosingAccounts({})).accounts).toEqual([]);
    const again = await auth.closeAccount({ accountId });
    expect(again.account?.closeTime).toBeDefined();
    const { entries } = await billing.listEntries({ accountId });
    expect(entries.filter(({ kind }) => kind === EntryKind.DRAW)).toHaveLength(2);
    const words = JSON.stringify(entries, (_, value) =>
      typeof value === "bigint" ? `${value}` : value,
    );
    expect(words).not.toMatch(/Ada|secret wish/);
  });

  test("cancels what waits, and is not closed while anything is held", async () => {
    const caller = await world.caller();
    const { accountId, keyId } = caller;
    const hold = { holdId: "hold_of_someone", keyId, amount: 5n, kind: HoldKind.TEXT, ref: "r" };
    const unit = Unit.USD_MICROS;
    const checkTime = timestampFromMs(world.now() + 86_400_000);
    await billing.reserve({ accountId, unit, ...hold, checkTime });
    await auth.closeAccount({ accountId });
    await world.later(closingLeastMs);
    const closing = (await auth.listClosingAccounts({})).accounts.find(
      (one) => one.account?.accountId === accountId,
    );
    const peers = dying(Number.POSITIVE_INFINITY);
    const state = async () => {
      await driveClosing({ account: closing?.account, keyIds: [keyId] }, peers, world);
      return (await auth.getAccount({ accountId })).account?.closeTime !== undefined;
    };
    expect(await state()).toBe(false);
    await billing.release({ accountId, unit, holdId: hold.holdId });
    expect(await state()).toBe(true);
  });

  test("is refused where there is none", async () => {
    await expect(auth.closeAccount({ accountId: "acct_none" })).rejects.toThrow(/no such account/);
  });
});
