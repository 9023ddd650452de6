// Reads and writes names of files in Content-Disposition, for forms and for downloads.

import { plainFileName } from "#common/words/file-name.ts";

/** A parameter: its name, and its value in quotes or bare. */
const parameter = /;\s*([^\s=;"]+)\s*=\s*("(?:[^"\\]|\\.)*"|[^;"]*)/g;
/** A value with its charset and language, where everything except letters, digits and some signs is in hexadecimal (RFC 8187). */
const extended = /^utf-8'[\w-]*'((?:[\w!#$&+.^`|~-]|%[\da-f]{2})*)$/i;

/**
 * The Content-Disposition of a form's part, with one name of its file where it has `filename*`. That one is more exact and is used (RFC
 * 6266, 4.3), or `filename` where it cannot be read. RFC 7578 forbids `filename*` in forms, but some clients send it.
 */
export function withOneName(disposition: string): string {
  if (!/filename\*/i.test(disposition)) return disposition;
  let [exact, simple]: (string | undefined)[] = [];
  const others = disposition.replace(parameter, (whole, name: string, value: string) => {
    if (/^filename\*$/i.test(name)) exact ??= readExtended(value.trim());
    else if (/^filename$/i.test(name)) simple ??= whole;
    else return whole;
    return "";
  });
  if (exact !== undefined) return `${others}; filename*=${extendedOf(exact)}`;
  // Any parameter that names a file makes the part a file.
  return others + (simple ?? '; filename=""');
}

/** Undefined where it is malformed, or in another charset. */
function readExtended(value: string): string | undefined {
  const [, encoded] = extended.exec(value) ?? [];
  try {
    return encoded === undefined ? undefined : plainFileName(decodeURIComponent(encoded));
  } catch {
    return undefined;
  }
}

/**
 * A Content-Disposition (RFC 6266): a name in ASCII for clients that read nothing else, and the full one where it differs. No character
 * of a name can end its value or the header.
 */
export function dispositionOf(type: "inline" | "attachment", fileName: string): string {
  const name = plainFileName(fileName) || "file";
  const dot = name.lastIndexOf(".");
  const [stem, suffix] = dot > 0 ? [name.slice(0, dot), name.slice(dot)] : [name, ""];
  const ascii = `${inAscii(stem).replace(/^[._]+/, "") || "file"}${inAscii(suffix)}`;
  const exact = ascii === name ? "" : `; filename*=${extendedOf(name)}`;
  return `${type}; filename="${ascii}"${exact}`;
}

/** To some clients all other signs, and `%`, have a meaning. */
function inAscii(text: string): string {
  return text.replace(/[^A-Za-z0-9._-]+/g, "_");
}

/** `name` is well-formed. */
function extendedOf(name: string): string {
  const hex = (sign: string) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`;
  return `UTF-8''${encodeURIComponent(name).replace(/['()*]/g, hex)}`;
}
