import { plainFileName } from "#common/words/file-name.ts";

// Names of files in Content-Disposition: as forms send them, and as downloads are answered.

/** A parameter: its name, and its value in quotes or bare. */
const parameter = /;\s*([^\s=;"]+)\s*=\s*("(?:[^"\\]|\\.)*"|[^;"]*)/g;
/** A value that says its charset and language, and has all but letters, digits and some signs written in hexadecimal (RFC 8187). */
const extended = /^utf-8'[\w-]*'((?:[\w!#$&+.^`|~-]|%[\da-f]{2})*)$/i;

/**
 * The Content-Disposition of a form's part with one name of its file where it has `filename*`: that one, which is more exact
 * (RFC 6266, 4.3), or `filename` where that one cannot be read. RFC 7578 forbids `filename*` in forms; clients send it all the same.
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
  // What names a file in any way is one.
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
 * A Content-Disposition (RFC 6266): a name in ASCII for clients that read nothing else, and, where it differs, the whole one. Nothing of
 * a name can end its value or the header.
 */
export function dispositionOf(type: "inline" | "attachment", fileName: string): string {
  const name = plainFileName(fileName) || "file";
  const dot = name.lastIndexOf(".");
  const [stem, suffix] = dot > 0 ? [name.slice(0, dot), name.slice(dot)] : [name, ""];
  const ascii = `${inAscii(stem).replace(/^[._]+/, "") || "file"}${inAscii(suffix)}`;
  const exact = ascii === name ? "" : `; filename*=${extendedOf(name)}`;
  return `${type}; filename="${ascii}"${exact}`;
}

/** Others than these signs, and `%`, have a meaning to some clients. */
function inAscii(text: string): string {
  return text.replace(/[^A-Za-z0-9._-]+/g, "_");
}

/** `name` is well-formed. */
function extendedOf(name: string): string {
  const hex = (sign: string) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`;
  return `UTF-8''${encodeURIComponent(name).replace(/['()*]/g, hex)}`;
}
