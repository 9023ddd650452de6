import { createProgram } from "../../services/host/cli/program.ts";
import { envToOperatorConfig } from "../../services/host/config.ts";

/** The exit code and the output of a command. */
export interface CommandEnd {
  code: number;
  out: string;
  err: string;
}

/** Runs the operator's command in this process with these variables. */
export async function runOperatorCommand(
  args: readonly string[],
  env: Parameters<typeof envToOperatorConfig>[0],
): Promise<CommandEnd> {
  const said = { out: "", err: "" };
  const program = createProgram({
    config: envToOperatorConfig(env),
    out: (text) => {
      said.out += text;
    },
    err: (text) => {
      said.err += text;
    },
  });
  return { code: await program.run(args), ...said };
}
