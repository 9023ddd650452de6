// Lists the names within a text request that may be sent to an upstream. `parameters.ts` lists those of the request itself.

/**
 * Names of nested properties that are sent to an upstream: those in a request's items, messages, parts, tools and calls. They are allow
 * lists, like those of the request itself (parameters.ts). A server's own names may cost the operator money (`cache_control` and
 * `prompt_cache_breakpoint` make dearer cache writes), or may do work that is unknown here. Names are those of the openai package,
 * 7.57, unless another source is given.
 */

/**
 * Types of items: `ResponseInputItem` of the openai package, 7.57, and `compaction_summary`, an older name of `compaction`. Another
 * type passes only on models that take every tool, because its effect at the upstream is unknown.
 */
export const knownItemTypes: ReadonlySet<string> = new Set([
  "additional_tools",
  "apply_patch_call",
  "apply_patch_call_output",
  "code_interpreter_call",
  "compaction",
  "compaction_summary",
  "compaction_trigger",
  "computer_call",
  "computer_call_output",
  "configuration_update",
  "custom_tool_call",
  "custom_tool_call_output",
  "file_search_call",
  "function_call",
  "function_call_output",
  "image_generation_call",
  "item_reference",
  "local_shell_call",
  "local_shell_call_output",
  "mcp_approval_request",
  "mcp_approval_response",
  "mcp_call",
  "mcp_list_tools",
  "message",
  "program",
  "program_output",
  "reasoning",
  "shell_call",
  "shell_call_output",
  "tool_search_call",
  "tool_search_output",
  "web_search_call",
]);

/** Properties of all known types of items, and of a message without a type. */
const ofItems: ReadonlySet<string> = new Set([
  ...["type", "id", "status", "role", "content", "phase", "created_by", "summary"],
  ...[
    "call_id",
    "caller",
    "caller_id",
    "name",
    "namespace",
    "arguments",
    "async",
    "input",
    "output",
  ],
  ...[
    "action",
    "actions",
    "operation",
    "environment",
    "code",
    "outputs",
    "error",
    "fingerprint",
    "result",
  ],
  ...[
    "acknowledged_safety_checks",
    "pending_safety_checks",
    "max_output_length",
    "queries",
    "results",
  ],
  ...["approval_request_id", "approve", "reason", "server_label", "tools", "execution"],
  ...["background", "output_format", "quality", "revised_prompt", "size", "svg_usage"],
  ...["reasoning", "text", "encrypted_content"],
  // State that the models of Anthropic and others want back: OpenRouter has it in items of reasoning, Gemini's servers beside calls.
  ...["format", "signature", "extra_content", "thought_signature"],
]);

/** Properties of parts of messages, outputs and reasoning. */
const ofParts: ReadonlySet<string> = new Set([
  ...["type", "text", "refusal", "annotations", "logprobs"],
  ...["detail", "image_url", "file_id", "file_data", "file_url", "filename", "file", "input_audio"],
  ...["encrypted_content", "format", "signature"],
]);
const partTypes: ReadonlySet<string> = new Set([
  ...["input_text", "output_text", "refusal", "summary_text", "reasoning_text"],
  ...["input_image", "input_file", "computer_screenshot", "file", "input_audio"],
]);

/** Properties of all known types of tools. `function` and `custom`: the nested form of chat. */
const ofTools: ReadonlySet<string> = new Set([
  ...[
    "type",
    "name",
    "description",
    "function",
    "custom",
    "tools",
    "parameters",
    "output_schema",
    "strict",
  ],
  ...[
    "allowed_callers",
    "async",
    "defer_loading",
    "format",
    "execution",
    "environment",
    "container",
  ],
  ...["display_height", "display_width"],
  ...[
    "external_web_access",
    "filters",
    "search_content_types",
    "search_context_size",
    "user_location",
  ],
  ...["max_num_results", "ranking_options", "vector_store_ids"],
  ...["allowed_tools", "authorization", "connector_id", "headers", "require_approval"],
  ...["server_description", "server_label", "server_url", "tunnel_id"],
  ...["action", "background", "complexity", "frame_count", "frame_duration_ms", "input_fidelity"],
  ...[
    "input_image_mask",
    "model",
    "moderation",
    "output_compression",
    "output_format",
    "partial_images",
  ],
  ...["quality", "size", "svg"],
]);
const toolTypes: ReadonlySet<string> = new Set([
  ...["function", "custom", "namespace", "local_shell", "shell", "apply_patch"],
  ...[
    "computer",
    "computer_use_preview",
    "file_search",
    "mcp",
    "code_interpreter",
    "image_generation",
  ],
  ...["web_search", "web_search_2025_08_26", "web_search_preview", "web_search_preview_2025_03_11"],
  ...["tool_search", "programmatic_tool_calling"],
]);

/** Properties of messages of chat. The last ones are those in which vLLM, DeepSeek and OpenRouter take reasoning back. */
const ofMessages: ReadonlySet<string> = new Set([
  ...["role", "content", "name", "refusal", "tool_calls", "tool_call_id", "function_call", "tools"],
  ...["reasoning", "reasoning_content", "reasoning_details", "extra_content", "thought_signature"],
]);
/** Properties of calls in messages. The last ones are state that Gemini's OpenAI-compatible servers want back. */
const ofCalls: ReadonlySet<string> = new Set([
  ...["id", "index", "type", "function", "custom", "extra_content", "thought_signature"],
]);
/** Properties of the function or custom tool in a tool, a call or a choice of chat. */
const ofFunctions: ReadonlySet<string> = new Set([
  ...[
    "name",
    "description",
    "parameters",
    "output_schema",
    "strict",
    "arguments",
    "input",
    "format",
    "thought_signature",
  ],
]);

/** The kind of an object by its place. Undefined: a part, or an object whose kind only its type shows. */
export type MemberKind = "item" | "message" | "call" | "tool" | "function";

/** The kind of the members of a list of this name. `isTop`: the list is the request's own. */
export function membersOf(name: string, isTop: boolean): MemberKind | undefined {
  switch (name) {
    case "tools":
      return "tool";
    case "tool_calls":
      return "call";
    case "input":
      return isTop ? "item" : undefined;
    case "messages":
      return isTop ? "message" : undefined;
    case "functions":
      return isTop ? "function" : undefined;
    default:
      return undefined;
  }
}

/** Names in an object that may be sent to an upstream. Undefined: all names, because the object's type is unknown here. */
export function namesWithin(
  type: unknown,
  kind: MemberKind | undefined,
): ReadonlySet<string> | undefined {
  const typeName = typeof type === "string" ? type : undefined;
  switch (kind) {
    case "item":
      return typeName === undefined || knownItemTypes.has(typeName) ? ofItems : undefined;
    case "tool":
      return typeName !== undefined && toolTypes.has(typeName) ? ofTools : undefined;
    case "message":
      return ofMessages;
    case "call":
      return ofCalls;
    case "function":
      return ofFunctions;
    case undefined:
      return typeName !== undefined && partTypes.has(typeName) ? ofParts : undefined;
  }
}
