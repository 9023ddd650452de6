// Names the causes of an error for the log, without a word that a caller may have written.

import { ConnectError } from "@connectrpc/connect";
import { isRefusal, reasonName } from "#kit/base/errors.ts";
import { codeName } from "./codes.ts";

/** The most causes of causes that are named. A driver's error has two or three. */
const maxCauses = 6;

/** Codes of Node and drivers, and names of classes. Anything else may be text that a caller wrote. */
const wordPattern = /^[A-Za-z][A-Za-z0-9_]{1,63}$/;

/**
 * The chain of causes of an error, outermost first, for a log: `unavailable < UND_ERR_SOCKET < ECONNRESET`. It has codes and names
 * alone, because an error's text may hold a caller's content. Undefined where the error has no cause.
 */
export function causesOf(error: Error): string | undefined {
  const names: string[] = [];
  for (let at = error.cause; at instanceof Error && names.length < maxCauses; at = at.cause) {
    names.push(nameOf(at));
  }
  return names.length === 0 ? undefined : names.join(" < ");
}

function nameOf(error: Error): string {
  if (isRefusal(error)) return reasonName(error.reason).toLowerCase();
  if (error instanceof ConnectError) return codeName(error.code);
  const { code } = error as { code?: unknown };
  if (typeof code === "number") return String(code);
  const words = [code, error.name].filter((word) => typeof word === "string");
  return words.find((word) => wordPattern.test(word)) ?? "Error";
}
