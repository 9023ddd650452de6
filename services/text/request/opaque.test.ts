import { describe, expect, test } from "vitest";
import { ask, prepare, refusalOf } from "../../../test/contract/usage.prepare.ts";
import { type OpaqueMaker, opaqueHash } from "./opaque.ts";

describe("opaque state", () => {
  const state = { type: "reasoning", id: "rs", summary: [], encrypted_content: "gAAAA" };
  const body = ask({ input: [{ role: "user", content: "x" }, state] });
  const maker = (accountId: string, upstream: string, value = "gAAAA"): OpaqueMaker => ({
    hash: opaqueHash(value),
    accountId,
    upstream,
  });
  const names = async (makers: OpaqueMaker[], asked: object = body) =>
    (await prepare(asked, { makers })).upstreams.map((one) => one.name);

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
    expect(await refusalOf(body, { makers: [theirs] })).toBe(
      "invalid_value input[1].encrypted_content",
    );
    expect(await names([theirs, maker("acct_1", "other")])).toEqual(["other"]);
  });
  test("another model's upstream, or two upstreams together, are refused", async () => {
    const elsewhere = { makers: [maker("acct_1", "legacy")] };
    expect(await refusalOf(body, elsewhere)).toBe("invalid_value input[1].encrypted_content");
    const second = { type: "compaction", encrypted_content: "second" };
    const both = ask({ input: [state, second] });
    const makers = [maker("acct_1", "up"), maker("acct_1", "other", "second")];
    expect(await refusalOf(both, { makers })).toBe("invalid_value input[1].encrypted_content");
  });
  test("of an upstream that the catalog no longer has: as if unknown", async () => {
    expect(await names([maker("acct_1", "gone")])).toEqual(["up"]);
  });
});
