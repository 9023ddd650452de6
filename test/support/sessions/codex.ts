/**
 * Requests of Codex 0.171.0, as it sent them to a server on the loopback. Their texts and schemas are shorter here. Everything else is as
 * it came. Codex sends one form for the models that it knows, and another for the names of others.
 */

const session = "01a229a5-a1a7-7c50-ba46-889a894b5d63";

/** Headers of its upgrade, and of its requests over HTTP, beside the key's. */
export const codexHeaders = {
  "user-agent": "codex_exec/0.171.0 (Debian 12.0.0; x86_64) unknown (codex_exec; 0.171.0)",
  originator: "codex_exec",
  "openai-beta": "responses_websockets=2026-02-06",
  "x-codex-turn-metadata": JSON.stringify({ session_id: session, request_kind: "prewarm" }),
  "x-codex-beta-features": "remote_compaction_v2",
  "x-client-request-id": session,
  "session-id": session,
  "thread-id": session,
  "x-codex-window-id": `${session}:0`,
};

const metadata = {
  "x-codex-installation-id": "4322fc10-243e-42e3-aa95-4ec4a5827e9f",
  "x-codex-window-id": `${session}:0`,
  "x-codex-turn-metadata": JSON.stringify({ session_id: session }),
  ...{ session_id: session, thread_id: session, turn_id: "" },
};

const parameters = (...names: string[]) => ({
  type: "object",
  properties: Object.fromEntries(names.map((name) => [name, { type: "string" }])),
  required: names,
  additionalProperties: false,
});
const named = (name: string, ...fields: string[]) => ({
  ...{ type: "function", name, description: `Does ${name}.`, strict: false },
  parameters: parameters(...fields),
});
const space = (name: string, tools: readonly object[]) => ({
  ...{ type: "namespace", name, description: `Tools of ${name}.`, tools },
});
const message = (role: string, id: string, ...texts: string[]) => ({
  ...{ type: "message", id: `msg_${session.slice(0, -2)}${id}`, role },
  content: texts.map((text) => ({ type: "input_text", text })),
});

/** The tool by which either form runs a command. */
export const codexCommand = { name: "exec_command", arguments: '{"cmd":"cat a.txt"}' };

/** A form: the fields of every request, the input of the warm-up, and the input of the first turn behind it. */
export interface CodexForm {
  fields: object;
  warmUp: readonly object[];
  begin: readonly object[];
}

const common = {
  ...{ tool_choice: "auto", store: false, include: ["reasoning.encrypted_content"] },
  ...{ prompt_cache_key: session, client_metadata: metadata },
};
const turn = [
  message("developer", "02", "<skills_instructions>", "<permissions instructions>"),
  message("user", "03", "<environment_context>\n  <cwd>project</cwd>"),
  {
    ...message("user", "04", "Read a.txt and tell the colour."),
    internal_chat_message_metadata_passthrough: { turn_id: session },
  },
];

/** For a model whose name Codex does not know. */
export const codexUnknownModel: CodexForm = {
  fields: {
    ...common,
    tools: [
      named("exec_command", "cmd"),
      named("write_stdin", "session_id", "chars"),
      named("view_image", "path"),
      space("multi_agent_v1", [named("close_agent", "id"), named("spawn_agent", "prompt")]),
      named("update_goal", "goal"),
    ],
    ...{ parallel_tool_calls: true, reasoning: { summary: "auto" } },
  },
  warmUp: [message("developer", "01", "You are a coding agent running in the Codex CLI.")],
  begin: turn,
};

/** For a model that Codex knows: its tools are an item of the input, and one of them writes by a grammar. */
export const codexKnownModel: CodexForm = {
  fields: {
    ...{ ...common, parallel_tool_calls: false, text: { verbosity: "low" } },
    reasoning: { effort: "low", context: "all_turns" },
  },
  warmUp: [],
  begin: [
    {
      ...{ type: "additional_tools", id: `at_${session}`, role: "developer" },
      tools: [
        space("functions", [
          {
            ...{ type: "custom", name: "exec", description: "Runs JavaScript." },
            format: { type: "grammar", syntax: "lark", definition: "start: /[\\s\\S]+/" },
          },
          named("wait", "cell_id"),
        ]),
        space("clock", [named("sleep", "ms")]),
      ],
    },
    message("developer", "01", "You are Codex."),
    ...turn,
  ],
};

/** The result of {@link codexCommand}. */
export const codexResult = (call_id: unknown) => ({
  ...{ type: "function_call_output", id: `fco_${session}`, call_id },
  output: "Process exited with code 0\nthe lamp is green\n",
});
