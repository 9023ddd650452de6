import { expect, it } from "vitest";
import { formatAddress, isPublicAddress, parseLiteral } from "./address.ts";

const special: readonly (readonly [first: string, last: string])[] = [
  ["0.0.0.0", "0.255.255.255"],
  ["10.0.0.0", "10.255.255.255"],
  ["100.64.0.0", "100.127.255.255"],
  ["127.0.0.0", "127.255.255.255"],
  ["168.63.129.16", "168.63.129.16"],
  ["169.254.0.0", "169.254.255.255"],
  ["172.16.0.0", "172.31.255.255"],
  ["192.0.0.0", "192.0.0.255"],
  ["192.0.2.0", "192.0.2.255"],
  ["192.31.196.0", "192.31.196.255"],
  ["192.52.193.0", "192.52.193.255"],
  ["192.88.99.0", "192.88.99.255"],
  ["192.168.0.0", "192.168.255.255"],
  ["192.175.48.0", "192.175.48.255"],
  ["198.18.0.0", "198.19.255.255"],
  ["198.51.100.0", "198.51.100.255"],
  ["203.0.113.0", "203.0.113.255"],
  ["224.0.0.0", "255.255.255.255"],
  ["::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["2620:4f:8000::", "2620:4f:8000:ffff:ffff:ffff:ffff:ffff"],
  ["3ffe::", "3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["4000::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
];

function bytesOf(text: string): Uint8Array {
  const bytes = parseLiteral(text);
  if (bytes === undefined) throw new Error(`no literal: ${text}`);
  return bytes;
}

function neighbour(bytes: Uint8Array, step: 1 | -1): Uint8Array | undefined {
  const next = Uint8Array.from(bytes);
  for (let index = next.length - 1; index >= 0; index--) {
    const value = (next[index] ?? 0) + step;
    next[index] = value;
    if (value >= 0 && value <= 255) return next;
  }
  return undefined;
}

it.each(special)("refuses %s to %s, from edge to edge", (first, last) => {
  expect(isPublicAddress(bytesOf(first))).toBe(false);
  expect(isPublicAddress(bytesOf(last))).toBe(false);
});

it("lets the addresses just outside every special range pass", () => {
  const edges = new Set(special.flat().map((text) => bytesOf(text).join()));
  const outside = special.flatMap(([first, last]) => [
    neighbour(bytesOf(first), -1),
    neighbour(bytesOf(last), 1),
  ]);
  // Where ranges touch, the neighbour of one is the edge of the other.
  const free = outside.filter((bytes) => bytes !== undefined && !edges.has(bytes.join()));
  expect(free.length).toBeGreaterThan(35);
  for (const bytes of free) {
    if (bytes !== undefined) expect([formatAddress(bytes), isPublicAddress(bytes)]).toContain(true);
  }
});

it("lets real public addresses pass", () => {
  for (const text of ["1.1.1.1", "8.8.8.8", "93.184.215.14", "172.15.0.1", "100.128.0.1"]) {
    expect(isPublicAddress(bytesOf(text))).toBe(true);
  }
  for (const text of ["2606:4700:4700::1111", "2a00:1450:4001:830::200e", "2001:200::1"]) {
    expect(isPublicAddress(bytesOf(text))).toBe(true);
  }
});

it("refuses ISATAP interface ids and anything that has not 4 or 16 bytes", () => {
  expect(isPublicAddress(bytesOf("2a00:1450::5efe:10.0.0.1"))).toBe(false);
  expect(isPublicAddress(bytesOf("2a00:1450::200:5efe:10.0.0.1"))).toBe(false);
  expect(isPublicAddress(new Uint8Array(0))).toBe(false);
  expect(isPublicAddress(Uint8Array.of(8, 8, 8))).toBe(false);
  expect(isPublicAddress(Uint8Array.of(8, 8, 8, 8, 8))).toBe(false);
});

it.each([
  ["127.0.0.1", "127.0.0.1"],
  ["127.1", "127.0.0.1"],
  ["127.0.1", "127.0.0.1"],
  ["2130706433", "127.0.0.1"],
  ["0x7f000001", "127.0.0.1"],
  ["0X7F.1", "127.0.0.1"],
  ["017700000001", "127.0.0.1"],
  ["0177.0.0.01", "127.0.0.1"],
  ["127.0.0.1.", "127.0.0.1"],
  ["0", "0.0.0.0"],
  ["0x", "0.0.0.0"],
  ["4294967295", "255.255.255.255"],
  ["192.0xa80001", "192.168.0.1"],
])("reads the IPv4 form %s as a URL does", (form, expected) => {
  expect(formatAddress(bytesOf(form))).toBe(expected);
  expect(new URL(`http://${form}/`).hostname).toBe(expected);
});

it.each(["", ".", "example.com", "1.2.3.4.5", "256.0.0.1", "1.2.3.256", "4294967296", "08.0.0.1"])(
  "takes %j for no IPv4 literal",
  (host) => expect(parseLiteral(host)).toBeUndefined(),
);

it.each(["0x1.2.3.4.", "1..2", "1.2.3.4..", "+1", "1e3", " 1.2.3.4", "1.2.3.4%0", "a:b.c"])(
  "agrees with the URL parser on the odd form %j, or refuses more",
  (host) => {
    const literal = parseLiteral(host);
    const text = URL.parse(`http://${host}/`)?.hostname;
    if (literal !== undefined) expect(text).toBe(formatAddress(literal));
  },
);

it.each([
  ["[::1]", "0:0:0:0:0:0:0:1"],
  ["::", "0:0:0:0:0:0:0:0"],
  ["::ffff:127.0.0.1", "0:0:0:0:0:ffff:7f00:1"],
  ["1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"],
  ["64:ff9b::10.0.0.1", "64:ff9b:0:0:0:0:a00:1"],
  ["2001:DB8::A", "2001:db8:0:0:0:0:0:a"],
])("reads the IPv6 form %s", (form, expected) => {
  expect(formatAddress(bytesOf(form))).toBe(expected);
});

it.each([
  ":::",
  "1:2:3:4:5:6:7:8:9",
  "1:2:3:4:5:6:7:8::",
  "1::2::3",
  "12345::",
  "::1%lo",
  "[::1%25lo]",
  "[::1",
  ":1",
  "1:",
  "::1.2.3",
  "::1.2.3.256",
  "::01.2.3.4",
  "::1.2.3.4:5",
  "1.2.3.4::",
])("takes %j for no IPv6 literal", (host) => {
  expect(parseLiteral(host)).toBeUndefined();
});

it("gives the same bytes for every spelling of a random address", () => {
  let seed = 7;
  const random = () => {
    seed = (seed * 1103515245 + 12345) % 2 ** 31;
    return seed;
  };
  for (let round = 0; round < 500; round++) {
    // Runs of zeros, which the URL parser compresses.
    const bytes = Uint8Array.from({ length: 16 }, () => (random() % 3 === 0 ? random() % 256 : 0));
    const text = formatAddress(bytes);
    expect(parseLiteral(text)).toEqual(bytes);
    expect(parseLiteral(new URL(`http://[${text}]/`).hostname)).toEqual(bytes);
  }
});
