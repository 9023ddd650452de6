import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { createProgram } from "../../services/host/cli/program.ts";
import { envToOperatorConfig } from "../../services/host/config.ts";

const run = promisify(execFile);

async function scriptFor(shell: string) {
  let out = "";
  const program = createProgram({
    config: envToOperatorConfig({}),
    out: (text) => {
      out += text;
    },
    err: () => {},
  });
  const code = await program.run(["completion", shell]);
  return { code, out };
}

/** The words that bash offers for the last one of a line. */
async function offered(...line: string[]): Promise<string[]> {
  const { out } = await scriptFor("bash");
  const words = ["genmesh", ...line].map((word) => `"${word}"`).join(" ");
  const asked = `COMP_WORDS=(${words}); COMP_CWORD=${line.length}; _genmesh; echo "\${COMPREPLY[*]}"`;
  const { stdout } = await run("bash", ["-c", `${out}\n${asked}`]);
  return stdout.trim().split(" ").filter(Boolean);
}

describe("bash completes", () => {
  test("commands", async () => {
    expect(await offered("ke")).toEqual(["key"]);
    expect(await offered("key", "r")).toEqual(["rotate", "revoke"]);
  });

  test("the options of a command and those of all, also behind values", async () => {
    expect(await offered("key", "create", "acct_1", "--scope", "text", "--mo")).toEqual([
      "--model",
      "--monthly-usd",
      "--monthly-usd-micros",
    ]);
    expect(await offered("--js")).toEqual(["--json"]);
    expect(await offered("job", "show", "--js")).toEqual(["--json"]);
  });

  test("nothing of genmesh where a value or a file stands", async () => {
    expect(await offered("catalog", "check", "dep")).toEqual([]);
  });
});

test.each(["zsh", "fish"])("%s has a script with all commands", async (shell) => {
  const { code, out } = await scriptFor(shell);
  expect(code).toBe(0);
  for (const word of ["account", "rotate", "secret-file"]) expect(out).toContain(word);
});

test("a shell that has none is refused", async () => {
  expect((await scriptFor("tcsh")).code).toBe(2);
});
