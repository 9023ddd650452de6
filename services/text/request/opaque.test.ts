import { describe, expect, test } from "vitest";
import { hashInTurns } from "#kit/base/in-turns.ts";
import { ask, prepare, refusalOf } from "../../../test/contract/usage.prepare.ts";
import { slowness } from "../../../test/support/reference-machine.ts";
import { hashesToRemember, type OpaqueMaker } from "./opaque.ts";

describe("opaque state", () => {
  const state = { type: "reasoning", id: "rs", summary: [], encrypted_content: "gAAAA" };
  const body = ask({ input: [{ role: "user", content: "x" }, state] });
  const maker = async (
    accountId: string,
    upstream: string,
    value = "gAAAA",
  ): Promise<OpaqueMaker> => {
    const [hash = ""] = await hashInTurns([value]);
    return { hash, accountId, upstream };
  };
  const names = async (makers: Promise<OpaqueMaker>[], asked: object = body) =>
    (await prepare(asked, { makers: await Promise.all(makers) })).upstreams.map((one) => one.name);

  test("none: every upstream may be tried", async () => {
    expect(await names([], ask({}))).toEqual(["up", "other"]);
  });
  test("unknown: the first upstream, no fallback, unchanged", async () => {
    expect(await names([])).toEqual(["up"]);
    const { body: sent } = await prepare(body);
    expect((sent.input as unknown[])[1]).toEqual(state);
  });
  test("known: the upstream that made it, no fallback", async () => {
    expect(await names([maker("acct_1", "other")])).toEqual(["other"]);
  });
  test("another account's is refused, unless it is ours as well", async () => {
    const theirs = maker("acct_2", "up");
    expect(await refusalOf(body, { makers: [await theirs] })).toBe(
      "invalid_value input[1].encrypted_content",
    );
    expect(await names([theirs, maker("acct_1", "other")])).toEqual(["other"]);
  });
  test("another model's upstream, or two upstreams together, are refused", async () => {
    const elsewhere = { makers: [await maker("acct_1", "legacy")] };
    expect(await refusalOf(body, elsewhere)).toBe("invalid_value input[1].encrypted_content");
    const second = { type: "compaction", encrypted_content: "second" };
    const both = ask({ input: [state, second] });
    const makers = [maker("acct_1", "up"), maker("acct_1", "other", "second")];
    expect(await refusalOf(both, { makers: await Promise.all(makers) })).toBe(
      "invalid_value input[1].encrypted_content",
    );
  });
  test("of an upstream that the catalog no longer has: as if unknown", async () => {
    expect(await names([maker("acct_1", "gone")])).toEqual(["up"]);
  });

  test("of megabytes is remembered without keeping the event loop", async () => {
    const value = "AbCd".repeat(8 * 1024 * 1024);
    const cpuMs = () => {
      const { user, system } = process.threadCpuUsage();
      return (user + system) / 1_000;
    };
    let [worstMs, lastMs, isOver] = [0, 0, false];
    const look = () => {
      const nowMs = cpuMs();
      worstMs = Math.max(worstMs, nowMs - lastMs);
      lastMs = nowMs;
      if (!isOver) setImmediate(look);
    };
    await new Promise((resolve) => setImmediate(resolve));
    lastMs = cpuMs();
    look();
    expect(await hashesToRemember(value)).toEqual(await hashInTurns([value]));
    isOver = true;
    expect(worstMs).toBeLessThan(50 * slowness());
  });
});
