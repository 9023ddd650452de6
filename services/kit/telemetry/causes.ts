import { ConnectError } from "@connectrpc/connect";
import { isRefusal, reasonName } from "#kit/base/errors.ts";
import { codeName } from "./codes.ts";

/** Causes of causes that are named: a driver's error has two or three. */
const maxCauses = 6;

/** Codes of Node and drivers, and names of classes; anything else may be text that a caller wrote. */
const wordPattern = /^[A-Za-z][A-Za-z0-9_]{1,63}$/;

/**
 * What lies behind an error, outermost first, for a log: `unavailable < UND_ERR_SOCKET < ECONNRESET`. Codes and names
 * alone, as the words of an error may hold what a caller sent. Undefined where nothing lies behind it.
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
