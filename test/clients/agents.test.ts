import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { chat } from "../e2e/catalog.ts";
import { claudeKey, withClaude } from "../e2e/claude-world.ts";
import { ownWorldOnly, startWorld, type World } from "../e2e/world.ts";
import { startAnthropic } from "../support/upstreams/anthropic.ts";
import { type Home, makeHome, missing } from "./installed.ts";

// Agents as they are installed, which call a tool and go on by its result, at each kind of upstream.

ownWorldOnly();
const double = await startAnthropic({ key: claudeKey });
const size = { maxInputTokens: 200_000, maxOutputTokens: 32_000, upstreamModel: "up-model" };
const start = (env: Record<string, string> = {}) =>
  startWorld(
    withClaude(
      double,
      [
        chat("at-responses", size),
        chat("at-chat", { ...size, upstream: "legacy" }),
        chat("at-messages", { ...size, upstream: "claude" }),
      ],
      env,
    ),
  );
const world = await start();
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await double[Symbol.asyncDispose]();
});
beforeEach(() => {
  double.usual = { content: [{ type: "text", text: "It is green." }] };
});

const file = "the lamp is green\n";
const answer = "It is green.";
const question = "Read a.txt and tell the colour.";

/** A home with a file to read. */
async function homeWithFile(): Promise<Home> {
  const home = await makeHome();
  await writeFile(join(home.path, "a.txt"), file);
  return home;
}

/** Both kinds of upstream call this tool at first, and then answer. */
function script(at: World, name: string, input: object): void {
  let asked = 0;
  const call = { name, arguments: JSON.stringify(input) };
  at.play(() => {
    const isFirst = asked++ === 0;
    return isFirst ? { kind: "ok", call, encrypted: "sealed" } : { kind: "ok", deltas: [answer] };
  });
  const thinking = { type: "thinking", thinking: "", signature: "c2ln" };
  const use = { type: "tool_use", id: "toolu_1", name, input };
  double.answers.splice(0, double.answers.length, { content: [thinking, use] });
}

/** The last request that an upstream got. */
const lastRequest = (at: World, model: string) => {
  const all = model === "at-messages" ? double.seen("messages") : at.upstream.requests;
  return all.at(-1)?.raw.toString() ?? "";
};

describe("Claude Code", async () => {
  const why = await missing("@anthropic-ai/claude-agent-sdk");
  const envOf = (model: string, secret: string) => ({
    ANTHROPIC_BASE_URL: world.baseUrl.replace(/\/v1$/, ""),
    ANTHROPIC_AUTH_TOKEN: secret,
    ANTHROPIC_MODEL: model,
    ANTHROPIC_DEFAULT_HAIKU_MODEL: model,
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
  });
  const ask = (words: string, more = "") =>
    `claude -p "${words}" --output-format json --allowedTools Read ${more}`;

  test.for(["at-responses", "at-chat", "at-messages"])(
    "reads a file, answers, and goes on at another model: %s",
    async (model, { skip }) => {
      if (why) return skip(why);
      await using home = await homeWithFile();
      const caller = await world.caller();
      script(world, "Read", { file_path: join(home.path, "a.txt") });
      const first = JSON.parse(await home.run(ask(question), envOf(model, caller.key)));
      expect(first).toMatchObject({ is_error: false, num_turns: 2, result: answer });
      expect(lastRequest(world, model)).toContain("the lamp is green");
      const { monthSpend } = await caller.settled();
      expect(monthSpend).toBe(60);
      world.play({ kind: "ok", deltas: ["Green still."] });
      const other = model === "at-responses" ? "at-chat" : "at-responses";
      const resume = ask("And now?", `--resume ${first.session_id}`);
      const second = JSON.parse(await home.run(resume, envOf(other, caller.key)));
      expect(second).toMatchObject({ is_error: false, result: "Green still." });
      expect(lastRequest(world, other)).toContain("the lamp is green");
      expect(lastRequest(world, other)).not.toContain("c2ln");
    },
  );

  test("shows once that the balance is too low", async ({ skip }) => {
    if (why) return skip(why);
    await using home = await homeWithFile();
    const poor = await world.caller({ usdMicros: 1n });
    const seen = world.play();
    const told = home.run(`${ask(question)} || exit 0`, envOf("at-responses", poor.key));
    expect(JSON.parse(await told)).toMatchObject({ is_error: true, api_error_status: 402 });
    expect(seen).toHaveLength(0);
    const refused = world.log.filter((line) => /"\/v1\/messages".*"status":402/.test(line));
    expect(refused).toHaveLength(1);
  });

  test("counts what its context holds, at once and free of charge", async ({ skip }) => {
    if (why) return skip(why);
    await using home = await homeWithFile();
    const caller = await world.caller();
    const before = world.log.length;
    const said = await home.run(ask("/context"), envOf("at-messages", caller.key));
    expect(JSON.parse(said)).toMatchObject({ is_error: false });
    const counted = world.log
      .slice(before)
      .flatMap((line) => /"\/v1\/messages\/count_tokens".*"status":(\d+)/.exec(line)?.[1] ?? []);
    expect(counted.length).toBeGreaterThan(10);
    expect(new Set(counted)).toEqual(new Set(["200"]));
    expect((await caller.settled()).monthSpend).toBe(0);
  });

  test("the Agent SDK runs it, with its key as x-api-key", async ({ skip }) => {
    if (why) return skip(why);
    await using home = await homeWithFile();
    const caller = await world.caller();
    script(world, "Read", { file_path: join(home.path, "a.txt") });
    await writeFile(
      join(home.path, "agent.mjs"),
      `import { query } from "@anthropic-ai/claude-agent-sdk";
       const types = [];
       let result;
       for await (const message of query({ prompt: "${question}", options: { allowedTools: ["Read"] } })) {
         types.push(message.type);
         result = message.result;
       }
       console.log(JSON.stringify({ types, result }));`,
    );
    const { ANTHROPIC_AUTH_TOKEN: secret, ...env } = envOf("at-messages", caller.key);
    const asked = home.run("node agent.mjs", { ...env, ANTHROPIC_API_KEY: secret });
    const said = JSON.parse(await asked);
    expect(said.result).toBe(answer);
    const turns = said.types.filter((type: string) => type === "assistant" || type === "user");
    expect(turns.at(-1)).toBe("assistant");
    expect(turns).toContain("user");
  });
});

describe("Codex", async () => {
  const why = await missing("@openai/codex");
  const exec =
    "codex exec --json --strict-config --skip-git-repo-check --sandbox danger-full-access";

  /** Asks it a question whose answer needs a command, and gives its events. */
  async function ask(at: World, model: string) {
    await using home = await homeWithFile();
    const caller = await at.caller();
    script(at, "exec_command", { cmd: "cat a.txt" });
    const provider = {
      ...{ name: "genmesh", base_url: at.baseUrl, env_key: "KEY", wire_api: "responses" },
      supports_websockets: true,
    };
    const settings = Object.entries(provider)
      .map(([name, value]) => `-c 'model_providers.genmesh.${name}=${JSON.stringify(value)}'`)
      .join(" ");
    const said = await home.run(
      `${exec} -c model_provider=genmesh ${settings} -c web_search=disabled -m ${model} "${question}"`,
      { KEY: caller.key },
    );
    const items = said.split("\n").flatMap((line) => (line ? [JSON.parse(line).item ?? {}] : []));
    const { monthSpend } = await caller.settled();
    return { items, monthSpend };
  }

  const metric = async (at: World, name: string) => {
    const text = await (await fetch(`${at.opsUrl}/metrics`)).text();
    const line = text.split("\n").find((one) => one.startsWith(name));
    return Number(line?.split(" ").at(-1) ?? 0);
  };
  const warmed = 'genmesh_websocket_creates_total{outcome="warmed"';
  const ran = {
    ...{ type: "command_execution", exit_code: 0, aggregated_output: file, status: "completed" },
  };

  test.for(["at-responses", "at-messages"])(
    "warms up, runs a command and answers, over its socket: %s",
    async (model, { skip }) => {
      if (why) return skip(why);
      const before = await metric(world, warmed);
      const { items, monthSpend } = await ask(world, model);
      expect(items).toContainEqual(expect.objectContaining(ran));
      expect(items.at(-2)).toMatchObject({ type: "agent_message", text: answer });
      expect(lastRequest(world, model)).toContain("the lamp is green");
      expect(monthSpend).toBe(60);
      expect(await metric(world, warmed)).toBe(before + 1);
    },
  );

  test("does the same over HTTP where there are no sockets", async ({ skip }) => {
    if (why) return skip(why);
    await using plain = await start({ GENMESH_WEBSOCKETS: "off" });
    const { items, monthSpend } = await ask(plain, "at-responses");
    expect(items).toContainEqual(expect.objectContaining(ran));
    expect(items.at(-2)).toMatchObject({ type: "agent_message", text: answer });
    expect(monthSpend).toBe(60);
    expect(await metric(plain, warmed)).toBe(0);
  });
});

test.for(["http", "websocket"])(
  "OpenAI's Agents SDK calls two tools in a loop, over %s",
  async (transport, { skip }) => {
    const why = await missing("@openai/agents");
    if (why) return skip(why);
    await using home = await makeHome();
    const caller = await world.caller();
    const calls: [name: string, input: object][] = [
      ["find_lamp", { room: "hall" }],
      ["read_colour", { lamp: "L1" }],
    ];
    const made = calls.map(([name, input], at) => ({
      content: [{ type: "tool_use", id: `toolu_${at}`, name, input }],
    }));
    double.answers.splice(0, double.answers.length, ...made);
    await writeFile(
      join(home.path, "agent.mjs"),
      `import { Agent, run, setDefaultOpenAIClient, setOpenAIResponsesTransport, setTracingDisabled, tool } from "@openai/agents";
     import OpenAI from "openai";
     import { z } from "zod";
     setTracingDisabled(true);
     setDefaultOpenAIClient(new OpenAI({ baseURL: process.env.BASE_URL, apiKey: process.env.KEY }));
     setOpenAIResponsesTransport("${transport}");
     const called = [];
     const made = (name, field, answer) => tool({
       name, description: name, parameters: z.object({ [field]: z.string() }),
       execute: (input) => { called.push([name, input]); return answer; },
     });
     const tools = [made("find_lamp", "room", "L1"), made("read_colour", "lamp", "green")];
     const agent = new Agent({ name: "Reader", instructions: "Be kind.", model: "at-messages", tools });
     const result = await run(agent, "Which colour has the lamp?", { stream: true });
     for await (const _ of result);
     console.log(JSON.stringify({ called, said: result.finalOutput }));
     process.exit(0);`,
    );
    const env = { BASE_URL: world.baseUrl, KEY: caller.key };
    const said = JSON.parse(await home.run("node agent.mjs", env));
    expect(said).toEqual({ called: calls, said: answer });
    expect((await caller.settled()).monthSpend).toBe(90);
  },
);
