import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, describe, expect, test } from "vitest";
import { startWorld } from "../e2e/world.ts";
import { makeHome, missing } from "./installed.ts";
import { blocksOf } from "./recipe-blocks.ts";

// The blocks of docs/clients.md, run as they stand against the built-in model. Only the address is another.

/** A Python that has the clients. By default the one on the path. */
const python = process.env.PYTHON ?? "python3";
const world = await startWorld();
afterAll(() => world[Symbol.asyncDispose]());

/** The commands that run a block of code from a file. */
const runners: Readonly<Record<string, { file: string; command: string }>> = {
  ts: { file: "block.mts", command: "node block.mts" },
  python: { file: "block.py", command: `${python} block.py` },
};

async function pythonLacks(module: string): Promise<string | undefined> {
  const why = `needs \`${python} -c "import ${module}"\` to work (PYTHON names another)`;
  return promisify(execFile)(python, ["-c", `import ${module}`]).then(
    () => undefined,
    () => why,
  );
}

/** A client of the page: its package, the file of its settings, and what its blocks print. */
interface Recipe {
  heading: string;
  needs?: string;
  pythonNeeds?: string;
  settings?: string;
  says: RegExp;
}

describe.for<Recipe>([
  { heading: "curl", says: /response\.completed/ },
  {
    ...{ heading: "Codex", needs: "@openai/codex", settings: ".codex/config.toml" },
    says: /\w{4}/,
  },
  {
    ...{ heading: "Claude Code and the Agent SDK", needs: "@anthropic-ai/claude-agent-sdk" },
    says: /\w{4}/,
  },
  { heading: "OpenAI's Agents SDK", needs: "@openai/agents", says: /hello/ },
  { heading: "opencode", needs: "opencode-ai", settings: "opencode.json", says: /\w{4}/ },
  { heading: "AI SDK", needs: "@ai-sdk/openai-compatible", says: /hello/ },
  {
    ...{ heading: "LangChain", needs: "@langchain/openai", pythonNeeds: "langchain_openai" },
    says: /hello/,
  },
  {
    ...{ heading: "Anthropic's packages", needs: "@anthropic-ai/sdk", pythonNeeds: "anthropic" },
    says: /hello/,
  },
])("$heading", ({ heading, needs, pythonNeeds, settings, says }) => {
  const blocks = blocksOf(heading, world.baseUrl);
  const code = blocks.filter(({ language }) => language === "sh" || language in runners);

  test("has a block", () => {
    expect(code).not.toEqual([]);
  });

  test.for(code)("its block in $language works, and is charged", async (block, { skip }) => {
    const isPython = block.language === "python";
    const why = isPython
      ? await pythonLacks(pythonNeeds ?? "openai")
      : needs && (await missing(needs));
    if (why) return skip(why);
    await using home = await makeHome();
    const caller = await world.caller();
    const config = blocks.find(({ language }) => language === "toml" || language === "json");
    if (config && settings) {
      const file = join(home.path, settings);
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, config.code);
    }
    const runner = runners[block.language];
    if (runner) await writeFile(join(home.path, runner.file), block.code);
    // The variables of a client are in its first block of a shell.
    const exports = blocks.flatMap(({ code }) => code.match(/^export .*$/gm) ?? []);
    const command = runner ? [...exports, runner.command].join("\n") : block.code;
    expect(await home.run(command, { KEY: caller.key })).toMatch(says);
    expect((await caller.settled()).monthSpend).toBeGreaterThan(0);
  });
});
