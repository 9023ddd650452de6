// Turns headers of HTTP into those of a call and back, trailers included.

import type { IncomingHttpHeaders } from "node:http";

/** Prefix of the names of a unary answer's trailers, which travel as headers. */
export const trailerPrefix = "trailer-";

/** Headers as HTTP libraries give them: names in lower case. */
export type RawHeaders = Readonly<IncomingHttpHeaders>;

/** One header's value. Several values are joined. */
export function oneOf(raw: RawHeaders, name: string): string | undefined {
  const value = raw[name];
  return Array.isArray(value) ? value.join(", ") : value;
}

/** All headers as Headers. */
export function headersOf(raw: RawHeaders): Headers {
  return picked(raw, (name) => name);
}

/** The headers of a unary answer that are not its trailers. */
export function leadingOf(raw: RawHeaders): Headers {
  return picked(raw, (name) => (name.startsWith(trailerPrefix) ? undefined : name));
}

/** The trailers of a unary answer. */
export function trailingOf(raw: RawHeaders): Headers {
  return picked(raw, (name) =>
    name.startsWith(trailerPrefix) ? name.slice(trailerPrefix.length) : undefined,
  );
}

function picked(raw: RawHeaders, nameOf: (name: string) => string | undefined): Headers {
  const headers = new Headers();
  for (const key in raw) {
    const name = nameOf(key);
    const value = raw[key];
    // Names with a colon are those of HTTP/2 itself.
    if (!name || name.startsWith(":") || value === undefined) continue;
    if (typeof value === "string") headers.append(name, value);
    else for (const one of value) headers.append(name, one);
  }
  return headers;
}

/** Appends `headers` to a flat list of names and values, each name with `prefix` before it. */
export function appendTo(list: string[], headers: Headers | undefined, prefix = ""): string[] {
  if (headers) for (const [name, value] of headers) list.push(prefix + name, value);
  return list;
}
