/** What a Range header asks of a file: all of it, a part (bounds inclusive), or what it does not have. */
export type WantedRange =
  | { kind: "whole" }
  | { kind: "part"; start: number; end: number }
  | { kind: "unsatisfiable" };

const whole: WantedRange = { kind: "whole" };
const unsatisfiable: WantedRange = { kind: "unsatisfiable" };

/**
 * Reads a Range header (RFC 9110, 14.2). What is no single range of bytes (another unit, several ranges, bad syntax)
 * is ignored, as the RFC allows: the answer is the whole file.
 */
export function wantedRange(header: string | undefined, sizeBytes: number): WantedRange {
  const match = /^bytes=\s*(\d*)-(\d*)\s*$/i.exec(header ?? "");
  if (!match) return whole;
  const [, first = "", last = ""] = match;
  if (first === "") {
    if (last === "") return whole;
    const length = Math.min(Number(last), sizeBytes);
    return length === 0 ? unsatisfiable : part(sizeBytes - length, sizeBytes - 1);
  }
  const start = Number(first);
  if (last !== "" && Number(last) < start) return whole;
  if (start >= sizeBytes) return unsatisfiable;
  return part(start, last === "" ? sizeBytes - 1 : Math.min(Number(last), sizeBytes - 1));
}

/** Does If-None-Match name this entity (weak comparison, as GET and HEAD ask for)? `etag` has its quotes. */
export function matchesNone(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  if (header.trim() === "*") return true;
  return header.split(",").some((one) => one.trim().replace(/^W\//, "") === etag);
}

/** May a Range apply under this If-Range (strong comparison; a date is never one of ours)? */
export function rangeApplies(ifRange: string | undefined, etag: string): boolean {
  return ifRange === undefined || ifRange.trim() === etag;
}

function part(start: number, end: number): WantedRange {
  return { kind: "part", start, end };
}
