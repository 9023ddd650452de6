// Starts a process of any role: reads the settings, then has `serve.ts` run it.

import { enableCompileCache } from "node:module";
import { parseArgs } from "node:util";
import { envToConfig, readEnv } from "./config.ts";
import { ConfigError } from "./env.ts";

/** `npm start [-- --role R]`. Exits with 0 after a requested stop, with 1 and one line where it cannot start. */
async function main(): Promise<void> {
  // The files that this process writes hold prompts or secrets.
  process.umask(0o077);
  // Halves the CPU time of every start after the first. Types are stripped and sources compiled once a version. Where the cache cannot
  // be written, everything works without it.
  enableCompileCache();
  try {
    const { values } = parseArgs({ options: { role: { type: "string" } } });
    const config = envToConfig(readEnv(), values.role === undefined ? {} : { role: values.role });
    // Loaded only now, so that a fault of the configuration is reported at once.
    const { serve } = await import("./serve.ts");
    await serve(config);
  } catch (error) {
    if (error instanceof ConfigError || isArgumentError(error)) {
      process.stderr.write(`genmesh: ${(error as Error).message.split("\n")[0]}\n`);
    } else {
      process.stderr.write(`genmesh: ${error instanceof Error ? error.stack : String(error)}\n`);
    }
    process.exitCode = 1;
  }
}

function isArgumentError(error: unknown): boolean {
  return (
    error instanceof Error && "code" in error && String(error.code).startsWith("ERR_PARSE_ARGS")
  );
}

await main();
