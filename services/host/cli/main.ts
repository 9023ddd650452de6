import { envToOperatorConfig, readEnv } from "../config.ts";
import { ConfigError } from "../env.ts";
import { createProgram } from "./program.ts";

/** The operator command: exit 0 where it did what was asked, 1 where not, 2 where the call's words are off. */
async function main(): Promise<void> {
  const out = (text: string) => void process.stdout.write(text);
  const err = (text: string) => void process.stderr.write(text);
  // A reader of the first lines alone (`| head`) has seen enough.
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
