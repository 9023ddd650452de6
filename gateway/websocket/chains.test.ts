import { expect, test } from "vitest";
import { createFairShare } from "#kit/share/fair-share.ts";
import { Chains } from "./chains.ts";

const chain = { id: "resp_1", items: new Uint8Array(8), root: undefined, calls: new Set<string>() };

test("a conversation that ends behind its socket takes no room", () => {
  const each = { places: 10, waiting: 0 };
  const share = createFairShare({ places: 10, each, waitMs: 1 });
  let bytes = 0;
  const events = {
    kept: (more: number) => {
      bytes += more;
    },
    notFound() {},
  };
  const chains = new Chains({ accountId: "a", share, events });
  chains.keep("", chain);
  expect(bytes).toBe(8);
  chains.close();
  chains.keep("", chain);
  expect(bytes).toBe(0);
  expect(share.takeFree("a", 10)).toBeDefined();
});

test("copies of chains beside the first one take room, and give it back", () => {
  const each = { places: 20, waiting: 0 };
  const share = createFairShare({ places: 20, each, waitMs: 1 });
  const missed: string[] = [];
  const events = { kept() {}, notFound: (reason: string) => void missed.push(reason) };
  const chains = new Chains({ accountId: "a", share, events });
  chains.keep("", chain);
  const first = chains.borrow("resp_1");
  expect(share.takeFree("a", 13)).toBeUndefined();
  const second = chains.borrow("resp_1");
  expect(() => chains.borrow("resp_1")).toThrow(/does not have the response/);
  expect(missed).toEqual(["room"]);
  second[Symbol.dispose]();
  chains.borrow("resp_1")[Symbol.dispose]();
  first[Symbol.dispose]();
  chains.close();
  expect(share.takeFree("a", 20)).toBeDefined();
});
