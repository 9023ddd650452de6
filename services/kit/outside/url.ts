// Judges a caller's URL by its text alone: its form, its port, and local names. `address.ts` judges the addresses behind its
// name.

import { isPublicAddress, parseLiteral } from "./address.ts";
import { OutsideError } from "./errors.ts";
import { outsideLimits } from "./limits.ts";

// Names that have a meaning only on the machine or network where they are looked up. These are RFC 6761 and 6762 special uses, ICANN's
// `internal` and `svc` of Kubernetes. The rest are names that home and office routers give.
const localSuffixes: ReadonlySet<string> = new Set([
  "alt",
  "arpa",
  "corp",
  "home",
  "internal",
  "intranet",
  "lan",
  "local",
  "localdomain",
  "localhost",
  "onion",
  "private",
  "svc",
  "test",
]);

// Above 1023 a web server may have any port except these. They are the Fetch standard's blocked ports and the usual ones of databases,
// queues and control planes.
const nonWebPorts: ReadonlySet<number> = new Set([
  1433, 1521, 1719, 1720, 1723, 1883, 2049, 2181, 2375, 2376, 2377, 2379, 2380, 3128, 3306, 3389,
  3659, 4045, 4190, 4222, 5060, 5061, 5222, 5432, 5671, 5672, 5900, 5984, 5985, 5986, 6000, 6379,
  6443, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 7000, 7001, 8125, 9042, 9092, 9100, 9200,
  9300, 10080, 10250, 10255, 11211, 15672, 27017, 27018, 27019,
]);

/**
 * Parses a URL that a caller wrote: absolute, http or https with `//`. It has no credentials, white space, control character or
 * backslash. A URL parser drops or turns those, and two parsers may differ. Throws `OutsideError` `invalid_url`.
 */
export function parseOutsideUrl(text: string, urlChars = outsideLimits.urlChars): URL {
  if (text.length > urlChars) throw new OutsideError("invalid_url");
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern refuses them.
  const isPlain = !/[\u0000-\u0020\u007f-\u00a0\\]/.test(text);
  const url = isPlain && /^https?:\/\/[^/]/i.test(text) ? URL.parse(text) : null;
  // An empty user ("http://@host") leaves no trace in the parsed URL.
  const authority = /^[^/]*\/\/([^/?#]*)/.exec(text)?.[1] ?? "";
  if (url === null || authority.includes("@")) throw new OutsideError("invalid_url");
  return url;
}

/** True for a text that {@link parseOutsideUrl} takes. The address behind it is not checked. */
export function isOutsideUrl(text: string): boolean {
  try {
    return parseOutsideUrl(text) !== undefined;
  } catch {
    return false;
  }
}

/** True when the port is 80, 443 or an unprivileged one without a well-known other use. */
export function isWebPort(url: URL): boolean {
  if (url.port === "") return true;
  const port = Number(url.port);
  return port === 80 || port === 443 || (port >= 1024 && !nonWebPorts.has(port));
}

/** True for a name that is local by its form: single-label, under a local suffix, or no name. */
export function isLocalName(hostname: string): boolean {
  const labels = hostname.toLowerCase().replace(/\.$/, "").split(".");
  const last = labels.at(-1) ?? "";
  // A last label of digits is no top-level domain. It belongs to an address that some parser may still read.
  return (
    labels.length < 2 ||
    labels.includes("") ||
    localSuffixes.has(last) ||
    /^(\d+|0x[0-9a-f]*)$/.test(last)
  );
}

/**
 * True when a URL must be refused by its text alone, without a look-up. Then its host is a literal non-public address or a local name,
 * or it is no usable URL at all (`parseOutsideUrl`). A false does not mean that the name leads to a public address. Pass on `new
 * URL(text).href`, not the text.
 */
export function isLocalNameOrNonPublicLiteral(text: string): boolean {
  let url: URL;
  try {
    url = parseOutsideUrl(text);
  } catch {
    return true;
  }
  const literal = parseLiteral(url.hostname);
  return literal === undefined ? isLocalName(url.hostname) : !isPublicAddress(literal);
}
