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
