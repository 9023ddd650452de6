// Starts the command `genmesh` with the streams of this process. `program.ts` makes it, so that tests can run it too.

import { envToOperatorConfig, readEnv } from "../config.ts";
import { ConfigError } from "../env.ts";
import { createProgram } from "./program.ts";

/** The operator command. Exits with 0 after success, 1 after a failure, 2 for invalid arguments. */
async function main(): Promise<void> {
  const out = (text: string) => void process.stdout.write(text);
  const err = (text: string) => void process.stderr.write(text);
  // A reader of the first lines (`| head`) closes the pipe early.
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
  });
  try {
    const program = createProgram({ config: envToOperatorConfig(readEnv()), out, err });
    process.exitCode = await program.run(process.argv.slice(2));
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    err(`genmesh: ${error.message}\n`);
    process.exitCode = 1;
  }
}

await main();
