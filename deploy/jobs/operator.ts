import { createProgram } from "../../services/host/cli/program.ts";
import { envToOperatorConfig, readEnv } from "../../services/host/config.ts";

/**
 * Runs the operator command inside this process, so that a secret among its words is in no process list, and answers its
 * JSON. Rejects with what it said where it did not do what was asked. `server`: where all services are, in one process.
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

// With --json a complaint is an object, but where the words themselves were off.
function messageIn(complaint: string): string {
  try {
    return String(JSON.parse(complaint).error.message);
  } catch {
    return complaint.trim();
  }
}
