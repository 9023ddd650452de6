// Words the line of a start that tells the operator where the console is.

import type { Config } from "./config.ts";

/** The line of a start with the console's address. None where it is off. */
export function consoleLine(
  { console: settings, publicUrl }: Pick<Config, "console" | "publicUrl">,
  baseUrl: string,
): string[] {
  if (!settings) return [];
  const base = (publicUrl ?? onLoopback(baseUrl)).replace(/\/v1$/, "");
  return [`console: ${base}/console/`];
}

/** A process that listens everywhere is reached on the loopback, where the console may be without TLS. */
function onLoopback(baseUrl: string): string {
  return baseUrl.replace(/^(https?:\/\/)(?:0\.0\.0\.0|\[::\])(?=:)/, "$1127.0.0.1");
}
