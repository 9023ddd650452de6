// Runs the operator command within the programs of the chart's Jobs.

import { createProgram } from "../../services/host/cli/program.ts";
import { envToOperatorConfig, readEnv } from "../../services/host/config.ts";

/**
 * Runs the operator command inside this process and answers its JSON. So a secret among its arguments is in no process list. Rejects with
 * the command's error text where it fails. `server` is the address of all services, where one process has them.
 */
export async function operate(
  words: readonly string[],
  server: string | undefined,
): Promise<Record<string, unknown>> {
  let printed = "";
  let complaint = "";
  const program = createProgram({
    config: envToOperatorConfig(readEnv()),
    out: (text) => {
      printed += text;
    },
    err: (text) => {
      complaint += text;
    },
  });
  const code = await program.run([...(server ? ["--server", server] : []), "--json", ...words]);
  if (code !== 0) throw new Error(`${words.slice(0, 2).join(" ")}: ${messageIn(complaint)}`);
  return JSON.parse(printed) as Record<string, unknown>;
}

// With --json an error is an object, except for invalid arguments.
function messageIn(complaint: string): string {
  try {
    return String(JSON.parse(complaint).error.message);
  } catch {
    return complaint.trim();
  }
}
