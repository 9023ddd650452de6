import { CommanderError } from "commander";
import { envToOperatorConfig, readEnv } from "../config.ts";
import { explain } from "./explain.ts";
import { createProgram } from "./program.ts";

/** The operator command: exit 0 where it did what was asked, 1 where not, 2 where the call's words are off. */
async function main(): Promise<void> {
  const out = (text: string) => void process.stdout.write(text);
  const err = (text: string) => void process.stderr.write(text);
  try {
    const program = createProgram({ config: envToOperatorConfig(readEnv()), out, err });
    process.exitCode = await program.run(process.argv.slice(2));
  } catch (error) {
    if (error instanceof CommanderError) {
      // Commander has printed its own text; help and version are no faults.
      process.exitCode = error.exitCode === 0 ? 0 : 2;
      return;
    }
    err(`genmesh: ${explain(error)}\n`);
    process.exitCode = 1;
  }
}

await main();
