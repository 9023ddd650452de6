/**
 * Requests of Claude Code 2.1.332, as it sent them to a server on the loopback. Their texts and schemas are shorter here. Everything else
 * is as it came: the fields and their order, the blocks, the marks of caches, the betas.
 */

/** Headers of every request, beside those of the key and the body. */
export const claudeCodeHeaders = {
  accept: "application/json",
  "anthropic-version": "2023-06-01",
  "anthropic-beta": [
    ...["claude-code-20250219", "interleaved-thinking-2025-05-14"],
    ...["context-management-2025-06-27", "mid-conversation-tool-changes-2026-07-01"],
    ...["thinking-token-count-2026-05-13", "advanced-tool-use-2025-11-20"],
    "effort-2025-11-24",
  ].join(),
  "anthropic-dangerous-direct-browser-access": "true",
  "user-agent": "claude-cli/2.1.332 (external, sdk-cli)",
  "x-app": "cli",
  "x-claude-code-session-id": "67d1735c-f447-478d-ba63-94f14d5c2949",
  "x-stainless-lang": "js",
  "x-stainless-package-version": "0.128.0",
  "x-stainless-retry-count": "0",
  "x-stainless-runtime": "node",
  "x-stainless-timeout": "600",
};

/** Where it sends its messages, and where it counts them, below the base URL. */
export const claudeCodePath = "/messages?beta=true";
export const claudeCodeCountPath = "/messages/count_tokens?beta=true";
/** Counts that its command `/context` sends at once. */
export const claudeCodeCounts = 24;

const cached = { cache_control: { type: "ephemeral" } };
const text = (said: string, more: object = {}) => ({ type: "text", text: said, ...more });
const environment = "# Environment\n - Primary working directory: project\n";

const named = (name: string) => ({
  ...{ name, description: `Runs ${name}.` },
  input_schema: {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    properties: { file_path: { type: "string" } },
    required: ["file_path"],
    additionalProperties: false,
  },
});
const tools = [
  ...["Agent", "Bash", "Edit", "ListAgents", "Read", "ReportFindings"].map(named),
  ...["ScheduleWakeup", "Skill", "ToolSearch", "Workflow"].map(named),
  { ...named("DeferredToolPlaceholder"), defer_loading: true },
  named("Write"),
];

/** Its messages before the first answer. */
export const claudeCodeBegin = [
  {
    role: "user",
    content: [
      text("<system-reminder>\nAttribution for git commits.\n</system-reminder>\n"),
      text("Read a.txt and tell the colour."),
    ],
  },
  { role: "system", content: [text(environment, cached)] },
];

/** Its messages after the call of a tool: the answer as it came, and the result. The mark of the cache has moved on. */
export const claudeCodeGoOn = (content: readonly { type: string; id?: string }[]) => [
  claudeCodeBegin[0],
  { role: "system", content: environment },
  { role: "assistant", content },
  {
    role: "user",
    content: [
      {
        tool_use_id: content.at(-1)?.id,
        type: "tool_result",
        content: "1\tthe lamp is green\n2\t",
        ...cached,
      },
    ],
  },
];

/** The body of a turn, without `stream`. */
export const claudeCodeBody = (model: string, messages: readonly unknown[]) => ({
  model,
  messages,
  system: [
    text("x-anthropic-billing-header: cc_version=2.1.332.8d4; cc_entrypoint=sdk-cli;"),
    text("You are a Claude agent, built on Anthropic's Claude Agent SDK.", cached),
    text("\nYou are an agent working with the user toward their goals.", cached),
  ],
  tools,
  metadata: { user_id: JSON.stringify({ device_id: "d0", account_uuid: "", session_id: "s0" }) },
  max_tokens: 32_000,
  thinking: { type: "adaptive", display: "omitted" },
  context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
  output_config: { effort: "high" },
});

/** The body of a count. */
export const claudeCodeCount = (model: string, messages: readonly unknown[]) => ({
  ...{ model, messages, tools },
});
