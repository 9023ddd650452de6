// Describes the answers of OpenAI's Responses for the OpenAPI document.

import { responseEvents } from "./response-event-schemas.ts";
import {
  anyObject,
  arrayOf,
  boolean,
  component,
  costFields,
  type Fields,
  fieldsOf,
  integer,
  nullable,
  number,
  open,
  optional,
  ref,
  type Schema,
  string,
  stringOrNull,
  taggedUnion,
} from "./schemas.ts";

const list = (items: Schema, description: string) => arrayOf(items, description);

/** Parts of an assistant's message. */
const outputParts = taggedUnion("OutputPart", "A part of the assistant's message.", {
  output_text: {
    name: "OutputText",
    fields: {
      text: string("The text."),
      annotations: list(anyObject, "Citations of a search, where there are any."),
      logprobs: list(anyObject, "Log probabilities, where they were asked for."),
    },
  },
  refusal: { name: "OutputRefusal", fields: { refusal: string("Why the model refuses.") } },
});

const itemStatus = string("Of the item.", { enum: ["in_progress", "completed", "incomplete"] });
const called = {
  id: string("The item."),
  call_id: string("Names the call in its `…_output` item."),
  name: string("The tool."),
  status: itemStatus,
};

const outputItems = taggedUnion(
  "OutputItem",
  "An item of the output. A tool of another family has items of its own types, which come as the upstream made them.",
  {
    message: {
      name: "OutputMessage",
      fields: {
        id: string("The item."),
        role: string("Who speaks.", { enum: ["assistant"] }),
        status: itemStatus,
        content: list(ref("OutputPart"), "Its parts."),
        "phase?": nullable(string("A remark on the way, or the answer.")),
      },
    },
    function_call: {
      name: "FunctionCall",
      fields: { ...called, arguments: string("The arguments, as JSON text.") },
    },
    custom_tool_call: {
      name: "CustomToolCall",
      fields: { ...called, input: string("The input, as free text.") },
    },
    reasoning: {
      name: "ReasoningItem",
      fields: {
        id: string("The item."),
        summary: list(
          fieldsOf({ type: string("`summary_text`."), text: string("The text.") }),
          "Its summary, where one was asked for.",
        ),
        "content?": nullable(
          list(
            fieldsOf({ type: string("`reasoning_text`."), text: string("The text.") }),
            "The reasoning, where the model shows it.",
          ),
        ),
        "encrypted_content?": stringOrNull("State for the next turn. Sent back unchanged."),
        "status?": nullable(itemStatus),
      },
    },
    compaction: {
      name: "CompactionItem",
      fields: {
        id: string("The item."),
        encrypted_content: string("State for the next turn. Sent back unchanged."),
      },
    },
    web_search_call: {
      name: "WebSearchCall",
      fields: {
        id: string("The item."),
        "status?": string("Of the search."),
        "action?": { ...anyObject, description: "The search or the page." },
      },
    },
  },
);

/** Tokens and charge of a response or compaction. */
const responseUsage = component(
  "ResponseUsage",
  fieldsOf(
    {
      input_tokens: integer("All input, cached input included."),
      output_tokens: integer("All output, reasoning included."),
      total_tokens: integer("Both."),
      "input_tokens_details?": fieldsOf({
        cached_tokens: integer("Of these, tokens read from a cache."),
        "cache_write_tokens?": integer("Of these, tokens written to a cache."),
        "audio_tokens?": integer("Of these, tokens of sound."),
        "image_tokens?": integer("Of these, tokens of images."),
        "text_tokens?": integer("Of these, tokens of text."),
      }),
      "output_tokens_details?": fieldsOf({
        reasoning_tokens: integer("Of these, tokens of reasoning."),
        "audio_tokens?": integer("Of these, tokens of sound."),
        "image_tokens?": integer("Of these, tokens of images."),
        "text_tokens?": integer("Of these, tokens of text."),
      }),
      "estimated?": boolean(
        "True: counted by us, as the upstream reported none that can be right.",
      ),
      ...optional(costFields),
    },
    { description: "Tokens, and what they were charged." },
  ),
);

const textFormat = fieldsOf(
  { type: string("`text`, `json_schema` or `json_object`.") },
  { ...open, description: "The form of the text." },
);

/** Options of the request that a response repeats. Absent ones have their default. */
const echoed: Fields = {
  max_output_tokens: nullable(integer("The bound of the output.")),
  max_tool_calls: nullable(integer("The bound of the tool calls.")),
  parallel_tool_calls: boolean("Several calls in one answer?"),
  reasoning: nullable(
    fieldsOf(
      { effort: stringOrNull("The effort."), "summary?": stringOrNull("Its summary.") },
      open,
    ),
  ),
  temperature: nullable(number("Of sampling.")),
  top_p: nullable(number("Of sampling.")),
  "presence_penalty?": nullable(number("Of sampling.")),
  "frequency_penalty?": nullable(number("Of sampling.")),
  "top_logprobs?": nullable(integer("Alternatives of each token.")),
  text: fieldsOf({ "format?": textFormat, "verbosity?": stringOrNull("Its length.") }, open),
  tool_choice: { description: "Which tool is called.", anyOf: [{ type: "string" }, anyObject] },
  tools: list(anyObject, "The tools that were offered."),
  truncation: stringOrNull("Always of the caller's choice."),
  "prompt_cache_key?": stringOrNull("The caller's own."),
  "safety_identifier?": stringOrNull("The caller's own."),
  "user?": stringOrNull("The caller's own."),
  metadata: nullable({ ...anyObject, description: "The caller's own." }),
  service_tier: stringOrNull("The tier that served it."),
};

const failure = fieldsOf({
  code: string("Machine code of an error."),
  message: string("For people."),
});

const response = component(
  "ResponseObject",
  fieldsOf(
    {
      id: string("`resp_…`; found by `GET /generation`."),
      object: string("", { enum: ["response"] }),
      created_at: number("Unix seconds."),
      completed_at: nullable(number("Unix seconds. Null: it is not complete.")),
      status: string("How far it is, or how it ended.", {
        enum: ["queued", "in_progress", "completed", "incomplete", "failed"],
      }),
      error: nullable({ ...failure, description: "Why it failed." }),
      incomplete_details: nullable(
        fieldsOf(
          { reason: string("`max_output_tokens`, `content_filter`, …") },
          { description: "Why it is incomplete." },
        ),
      ),
      instructions: stringOrNull("The caller's own. The configured developer prompt never shows."),
      model: string("Model id."),
      output: list(ref("OutputItem"), "What the model made."),
      usage: { anyOf: [ref("ResponseUsage"), { type: "null" }] },
      previous_response_id: stringOrNull("Over a WebSocket: the response before it."),
      store: boolean("False: nothing is kept for later turns.", { const: false }),
      "background?": nullable(boolean("False.")),
      ...echoed,
    },
    { ...open, description: "An answer of `POST /responses`." },
  ),
);

const compacted = component(
  "CompactedResponse",
  fieldsOf(
    {
      id: string("`resp_…`; found by `GET /generation`."),
      object: string("", { enum: ["response.compaction"] }),
      created_at: number("Unix seconds."),
      output: list(anyObject, "Items that are sent unchanged as `input` of the next request."),
      "usage?": { anyOf: [ref("ResponseUsage"), { type: "null" }] },
    },
    { ...open, description: "An answer of `POST /responses/compact`." },
  ),
);

/** Components of the answers of `POST /responses` and `POST /responses/compact`. */
export const responseComponents: readonly Schema[] = [
  response,
  compacted,
  responseUsage,
  ...outputItems,
  ...outputParts,
  ...responseEvents,
];
