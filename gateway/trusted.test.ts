import { expect, test } from "vitest";
import { trustedAddresses } from "./trusted.ts";

test("addresses and networks are trusted, and nothing else", () => {
  const isTrusted = trustedAddresses("10.0.0.0/8, 192.0.2.7,fd00::/8");
  const addresses = ["10.9.8.7", "::ffff:10.1.1.1", "192.0.2.7", "fd12::1"];
  expect(addresses.filter((one) => !isTrusted(one))).toEqual([]);
  const strangers = ["11.0.0.1", "192.0.2.8", "fe80::1", "::1", "", "nonsense", undefined];
  expect(strangers.filter(isTrusted)).toEqual([]);
});

test("without a list no peer is", () => {
  expect([undefined, ""].map((list) => trustedAddresses(list)("127.0.0.1"))).toEqual([
    false,
    false,
  ]);
});
