// Decides whether an address is on the public internet. So a caller's URL cannot reach this machine or its network.

/**
 * Addresses as bytes. Only the 4 or 16 bytes of an address decide whether it is public. Parsers differ in how they read text forms, but
 * not in bytes.
 */

type Range = readonly [bytes: readonly number[], bits: number];

// The IANA IPv4 special-purpose registry, multicast and class E, which is kept for later. Ranges of the registry that are globally
// reachable (AS112, AMT) host no web servers and are refused as well.
const specialV4: readonly Range[] = [
  [[0], 8], // "this network"; 0.0.0.0 reaches the loopback
  [[10], 8], // private
  [[100, 64], 10], // carrier-grade NAT, and metadata services of some clouds
  [[127], 8], // loopback
  [[168, 63, 129, 16], 32], // Azure's host agent: looks public, answers only inside a machine
  [[169, 254], 16], // link-local, metadata services
  [[172, 16], 12], // private
  [[192, 0, 0], 24], // IETF protocol assignments
  [[192, 0, 2], 24], // documentation
  [[192, 31, 196], 24], // AS112
  [[192, 52, 193], 24], // AMT
  [[192, 88, 99], 24], // 6to4 relays, deprecated
  [[192, 168], 16], // private
  [[192, 175, 48], 24], // AS112
  [[198, 18], 15], // benchmarking
  [[198, 51, 100], 24], // documentation
  [[203, 0, 113], 24], // documentation
  [[224], 4], // multicast
  [[240], 4], // class E, and broadcast
];

const globalV6: Range = [[0x20], 3];

// Special ranges inside 2000::/3. All addresses outside of it are refused: loopback, IPv4-mapped and -compatible, NAT64, unique local,
// link-local, multicast, discard, SRv6.
const specialV6: readonly Range[] = [
  [[0x20, 0x01, 0x00], 23], // IETF protocol assignments: Teredo, ORCHID, benchmarking, …
  [[0x20, 0x01, 0x0d, 0xb8], 32], // documentation
  [[0x20, 0x02], 16], // 6to4: carries an IPv4 address
  [[0x26, 0x20, 0x00, 0x4f, 0x80, 0x00], 48], // AS112
  [[0x3f, 0xfe], 16], // 6bone, returned
  [[0x3f, 0xff, 0x00], 20], // documentation
];

/** True for an address on the public internet: 4 bytes (IPv4) or 16 (IPv6), network order. */
export function isPublicAddress(bytes: Uint8Array): boolean {
  if (bytes.length === 4) return !specialV4.some((range) => isWithin(bytes, range));
  if (bytes.length !== 16 || !isWithin(bytes, globalV6)) return false;
  return !specialV6.some((range) => isWithin(bytes, range)) && !isIsatap(bytes);
}

/** ISATAP puts an IPv4 address behind the interface id 0000:5efe or 0200:5efe of any prefix. */
function isIsatap(bytes: Uint8Array): boolean {
  return (
    ((bytes[8] ?? 0) & 0xfd) === 0 && bytes[9] === 0 && bytes[10] === 0x5e && bytes[11] === 0xfe
  );
}

function isWithin(bytes: Uint8Array, [prefix, bits]: Range): boolean {
  for (let index = 0; index * 8 < bits; index++) {
    const mask = (0xff << Math.max(0, 8 - (bits - index * 8))) & 0xff;
    if (((bytes[index] ?? 0) & mask) !== ((prefix[index] ?? 0) & mask)) return false;
  }
  return true;
}

/**
 * The bytes of a host that is an address literal, or undefined when it is a name. Reads IPv4 in every form that a WHATWG URL takes
 * (decimal, octal, hexadecimal, one to four parts, trailing dot). Reads IPv6 with or without brackets. A host with a zone id is no
 * literal.
 */
export function parseLiteral(host: string): Uint8Array | undefined {
  if (host.startsWith("[") && host.endsWith("]")) return parseV6(host.slice(1, -1));
  return host.includes(":") ? parseV6(host) : parseV4(host);
}

/** The text of an address in a form that every resolver and socket reads the same way. */
export function formatAddress(bytes: Uint8Array): string {
  if (bytes.length === 4) return bytes.join(".");
  const groups: string[] = [];
  for (let index = 0; index < bytes.length; index += 2) {
    groups.push((((bytes[index] ?? 0) << 8) | (bytes[index + 1] ?? 0)).toString(16));
  }
  return groups.join(":");
}

function parseV4(host: string): Uint8Array | undefined {
  const parts = (host.endsWith(".") ? host.slice(0, -1) : host).split(".");
  if (parts.length > 4) return undefined;
  const numbers = parts.map(parseV4Part);
  let value = 0;
  for (const [index, number] of numbers.entries()) {
    // The last part fills all remaining bytes: 127.1 is 127.0.0.1.
    const isLast = index === numbers.length - 1;
    const bound = isLast ? 256 ** (5 - numbers.length) : 256;
    if (number === undefined || number >= bound) return undefined;
    value += isLast ? number : number * 256 ** (3 - index);
  }
  return Uint8Array.of(value >>> 24, value >>> 16, value >>> 8, value);
}

function parseV4Part(part: string): number | undefined {
  if (/^0x[0-9a-f]*$/i.test(part)) return part.length === 2 ? 0 : Number.parseInt(part, 16);
  if (/^0[0-7]*$/.test(part)) return Number.parseInt(part, 8);
  return /^[1-9][0-9]*$/.test(part) ? Number(part) : undefined;
}

function parseV6(text: string): Uint8Array | undefined {
  const halves = text.split("::");
  if (halves.length > 2) return undefined;
  const head = parseGroups(halves[0] ?? "", halves.length === 1);
  const tail = halves.length === 2 ? parseGroups(halves[1] ?? "", true) : [];
  if (head === undefined || tail === undefined) return undefined;
  const missing = 16 - head.length - tail.length;
  // "::" means at least one group of zeros.
  if (halves.length === 1 ? missing !== 0 : missing < 2) return undefined;
  return Uint8Array.from([...head, ...Array<number>(missing).fill(0), ...tail]);
}

/** Bytes of groups between colons; only the last one may be a dotted IPv4 address. */
function parseGroups(text: string, mayEndDotted: boolean): number[] | undefined {
  if (text === "") return [];
  const bytes: number[] = [];
  const groups = text.split(":");
  for (const [index, group] of groups.entries()) {
    if (/^[0-9a-f]{1,4}$/i.test(group)) {
      const value = Number.parseInt(group, 16);
      bytes.push(value >> 8, value & 0xff);
    } else if (mayEndDotted && index === groups.length - 1) {
      const dotted = parseDotted(group);
      if (dotted === undefined) return undefined;
      bytes.push(...dotted);
    } else {
      return undefined;
    }
  }
  return bytes;
}

/** Inside IPv6 only the plain form with four decimal parts is allowed. */
function parseDotted(text: string): number[] | undefined {
  const parts = text.split(".");
  if (parts.length !== 4 || !parts.every((part) => /^(0|[1-9][0-9]{0,2})$/.test(part))) {
    return undefined;
  }
  const bytes = parts.map(Number);
  return bytes.every((byte) => byte < 256) ? bytes : undefined;
}
