// Adds the fields to a response object that servers leave out, and hides those that are not for callers.

import { errorRow, type Reason } from "#kit/base/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { completeUsage } from "../usage.ts";
import { completeItem, type ItemFacts } from "./complete-item.ts";
import { plainItems } from "./plain-calls.ts";
import { responseFields } from "./visible-fields.ts";

/**
 * Properties by which a caller names its end users and its caches. By them upstreams decide whose cache a prompt may be read from. They
 * are sent in another form than the caller's (`nameForAccount` of text/request/prepare.ts).
 */
export const callerNames = ["prompt_cache_key", "safety_identifier", "user"] as const;

/** Facts about an answer beside those that the upstream reports. */
export interface ResponseFacts extends ItemFacts {
  /** Id of the response. */
  id: string;
  /** Public id of the model. */
  modelId: string;
  /** Shown in `instructions`, which never shows the developer prompt. */
  callerInstructions: string | null;
  /** The configured prompt that was sent. "" or undefined: none. */
  developerPrompt?: string;
  /**
   * The request as its caller sent it. The caller's own names are shown as in it. Absent: they are shown as they were sent to the
   * upstream.
   */
  asked?: JsonObject;
  /** The request in the Responses format. Options that the upstream does not echo are echoed from it. */
  body: JsonObject;
  /** The time now, in seconds since the epoch. */
  nowS: () => number;
}

/** `status` of a response object. */
export type ResponseStatus = "queued" | "in_progress" | "completed" | "incomplete" | "failed";

/**
 * The response object with every field of OpenAI's and Open Responses', and no other. Fields that the upstream gave stay. Others come
 * from the request or have the default. `id`, `model`, `instructions` and `store` are always those of genmesh. The caller of this
 * function must set `output`.
 */
export function completeResponse(
  found: JsonObject,
  facts: ResponseFacts,
  status: ResponseStatus,
): JsonObject {
  const whole = defaults(facts, status);
  for (const name in found) {
    const value = found[name];
    if (value === undefined || !responseFields.has(name)) continue;
    // A null here says no more than an absent field. It must not replace a value.
    if (value !== null || whole[name] === undefined) whole[name] = value;
  }
  for (const name of callerNames) {
    const own = facts.asked?.[name];
    if (typeof own === "string") whole[name] = own;
  }
  whole.id = facts.id;
  whole.object = "response";
  whole.status = status;
  whole.instructions = facts.callerInstructions;
  whole.model = facts.modelId;
  whole.store = false;
  whole.usage = completeUsage(found.usage);
  whole.incomplete_details = detailsOf(found.incomplete_details);
  whole.tools = echoedTools(whole.tools);
  return whole;
}

/** An `output` as clients rely on it. Missing ids are made. */
export function completeOutput(output: JsonValue | undefined, facts: ItemFacts): JsonObject[] {
  if (!Array.isArray(output)) return [];
  return plainItems(output)
    .filter(isJsonObject)
    .map((item) => completeItem(item, facts));
}

/** Options of a request, which its answer repeats. */
const optionNames = [
  ...["max_output_tokens", "max_tool_calls", "parallel_tool_calls", "prompt_cache_key"],
  ...["safety_identifier", "service_tier", "temperature", "tool_choice", "tools", "top_logprobs"],
  ...["top_p", "presence_penalty", "frequency_penalty", "truncation", "user", "metadata"],
];

/** An answer to a request without options, in the order of its fields. */
const plainest: JsonObject = {
  id: "",
  object: "response",
  created_at: 0,
  status: "completed",
  background: false,
  completed_at: null,
  error: null,
  incomplete_details: null,
  instructions: null,
  max_output_tokens: null,
  max_tool_calls: null,
  model: "",
  output: [],
  parallel_tool_calls: true,
  previous_response_id: null,
  prompt_cache_key: null,
  reasoning: null,
  safety_identifier: null,
  service_tier: "default",
  store: false,
  temperature: 1,
  text: null,
  tool_choice: "auto",
  tools: [],
  top_logprobs: 0,
  top_p: 1,
  presence_penalty: 0,
  frequency_penalty: 0,
  truncation: "disabled",
  usage: null,
  user: null,
  metadata: {},
};

function defaults({ body, nowS }: ResponseFacts, status: ResponseStatus): JsonObject {
  const whole: JsonObject = { ...plainest };
  whole.created_at = nowS();
  whole.status = status;
  if (status === "completed") whole.completed_at = whole.created_at;
  const { reasoning, text } = body;
  whole.reasoning = { effort: null, summary: null, ...(isJsonObject(reasoning) && reasoning) };
  whole.text = { format: { type: "text" }, ...(isJsonObject(text) && text) };
  for (const name of optionNames) {
    const asked = body[name];
    if (asked !== undefined && asked !== null) whole[name] = asked;
  }
  return whole;
}

/** Why it is incomplete. A reason is one word, and never a text of the upstream's. */
function detailsOf(found: JsonValue | undefined): JsonValue {
  const reason = isJsonObject(found) ? found.reason : undefined;
  return typeof reason === "string" && /^\w{1,64}$/.test(reason) ? { reason } : null;
}

function echoedTools(tools: JsonValue | undefined): JsonValue {
  if (!Array.isArray(tools)) return [];
  return tools.map((tool) =>
    isJsonObject(tool) && tool.type === "function"
      ? { ...tool, description: tool.description ?? null, ...functionDefaults(tool) }
      : tool,
  );
}

function functionDefaults(tool: JsonObject): JsonObject {
  return { parameters: tool.parameters ?? null, strict: tool.strict ?? null };
}

/** A complete response object as failed, with the error's text of genmesh. */
export function failedResponse(response: JsonObject, reason: Reason): JsonObject {
  const { code, message } = errorRow(reason);
  return {
    ...response,
    status: "failed",
    completed_at: null,
    incomplete_details: null,
    error: { code, message },
  };
}
