import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { startWorld } from "../e2e/world.ts";
import { freePort } from "../support/free-port.ts";
import { until } from "../support/until.ts";
import { makeHome, n8n } from "./installed.ts";
import { blocksOf } from "./recipe-blocks.ts";

// The blocks of docs/clients.md for clients that are servers with a store of their own. Each starts with an empty one.

/** A Python that has Open WebUI. By default the one on the path. */
const python = process.env.PYTHON ?? "python3";
const world = await startWorld();
afterAll(() => world[Symbol.asyncDispose]());

/** Milliseconds for the start of a server that makes the tables of its store first. */
const startWithinMs = 200_000;

test("Open WebUI lists the models and passes on a chat, which is charged", async ({ skip }) => {
  const has = promisify(execFile)(python, ["-c", "import open_webui"]);
  const why = `needs \`${python} -c "import open_webui"\` to work (pip install open-webui; PYTHON names another)`;
  const reason = await has.then(
    () => undefined,
    () => why,
  );
  if (reason) return skip(reason);
  await using home = await makeHome();
  const caller = await world.caller();
  const port = await freePort();
  const [block] = blocksOf("Open WebUI", world.baseUrl);
  const code = block?.code
    .replace(/^pip install .*\n/m, "")
    .replace("--port 3000", `--port ${port}`)
    // The shell becomes the server, so that it ends with its home.
    .replace(/^open-webui/m, "exec open-webui");
  const env = {
    KEY: caller.key,
    PATH: [dirname(python), process.env.PATH].join(delimiter),
    DATA_DIR: home.path,
    // It has no accounts then, and asks no other server for a model of embeddings.
    WEBUI_AUTH: "False",
    HF_HUB_OFFLINE: "1",
    RAG_EMBEDDING_ENGINE: "openai",
    ENABLE_OLLAMA_API: "False",
  };
  let failure: unknown;
  home.run(code ?? "", env).catch((error) => (failure = error));
  const origin = `http://127.0.0.1:${port}`;
  const started = () => {
    if (failure) throw failure;
    return fetch(`${origin}/health`).then(
      ({ ok }) => ok,
      () => false,
    );
  };
  await until("Open WebUI's start", started, { withinMs: startWithinMs });
  const ask = async (path: string, body?: object, token = "") => {
    const response = await fetch(origin + path, {
      method: body ? "POST" : "GET",
      headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    expect(response.status, path).toBe(200);
    return await response.json();
  };
  const { token } = await ask("/api/v1/auths/signin", { email: "", password: "" });
  const models = await ask("/api/models", undefined, token);
  expect(models.data.map(({ id }: { id: string }) => id)).toContain("chat-1");
  const messages = [{ role: "user", content: "Say hello." }];
  const chat = { model: "chat-1", messages, stream: false };
  const answer = await ask("/api/chat/completions", chat, token);
  expect(answer.choices[0].message.content).toMatch(/hello/);
  expect((await caller.settled()).monthSpend).toBeGreaterThan(0);
});

/** A workflow of n8n: a chain whose model is chosen as the page says. */
const workflow = (model: object) => ({
  id: "hello",
  name: "hello",
  active: false,
  settings: {},
  nodes: [
    { name: "Start", type: "n8n-nodes-base.manualTrigger", typeVersion: 1, parameters: {} },
    {
      name: "Chain",
      type: "@n8n/n8n-nodes-langchain.chainLlm",
      typeVersion: 1.9,
      parameters: { promptType: "define", text: "Say hello." },
    },
    {
      name: "Model",
      type: "@n8n/n8n-nodes-langchain.lmChatOpenAi",
      typeVersion: 1.3,
      parameters: { model: { __rl: true, mode: "id", value: "chat-1" }, ...model },
      credentials: { openAiApi: { id: "genmesh", name: "genmesh" } },
    },
  ].map((node, index) => ({ id: String(index), position: [index * 200, 0], ...node })),
  connections: {
    Start: { main: [[{ node: "Chain", type: "main", index: 0 }]] },
    Model: { ai_languageModel: [[{ node: "Chain", type: "ai_languageModel", index: 0 }]] },
  },
});

test.for([true, false])(
  "n8n's chat model answers with the Responses API %s, and is charged",
  async (responsesApiEnabled, { skip }) => {
    if (!existsSync(join(n8n.folder, "node_modules/n8n"))) {
      return skip("needs n8n (npm run clients FOLDER -- --n8n, and GENMESH_TEST_CLIENTS=FOLDER)");
    }
    await using home = await makeHome();
    const caller = await world.caller();
    const [block] = blocksOf("n8n", world.baseUrl);
    await writeFile(
      join(home.path, "hello.json"),
      JSON.stringify(workflow({ responsesApiEnabled })),
    );
    const commands = [
      block?.code ?? "",
      "n8n import:workflow --input=hello.json",
      "n8n execute --id=hello --rawOutput",
    ];
    const env = {
      KEY: caller.key,
      PATH: [join(n8n.folder, "node_modules/.bin"), process.env.PATH].join(delimiter),
      N8N_DIAGNOSTICS_ENABLED: "false",
      N8N_RUNNERS_BROKER_PORT: String(await freePort()),
    };
    const printed = await home.run(`set -e\n${commands.join("\n")}`, env);
    const { data } = JSON.parse(printed.slice(printed.search(/^\{$/m)));
    expect(data.resultData.runData.Chain[0].data.main[0][0].json.text).toMatch(/hello/);
    expect((await caller.settled()).monthSpend).toBeGreaterThan(0);
    const { json } = await caller.get("/requests");
    const operation = responsesApiEnabled ? "responses" : "chat";
    expect(json.data).toMatchObject([{ operation, status: "completed" }]);
  },
);
