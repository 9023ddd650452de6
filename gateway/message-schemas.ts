// Describes Anthropic's Messages for the OpenAPI document. Nothing is validated by it: the text service reads bodies.

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

const textOrBlocks = (description: string): Schema => ({
  description,
  anyOf: [{ type: "string" }, { type: "array", items: anyObject }],
});

/** The result of a tool that the upstream carried out. */
const resultOf = (name: string) => ({
  name,
  fields: {
    tool_use_id: string("Of the call."),
    content: { description: "As the upstream made it, with state for the next turn." },
  },
});

const blocks = taggedUnion("MessageBlock", "A block of an answer.", {
  text: {
    name: "MessageText",
    fields: {
      text: string("The text."),
      "citations?": nullable(arrayOf(anyObject, "Of the documents of the request.")),
    },
  },
  thinking: {
    name: "MessageThinking",
    fields: {
      thinking: string("The reasoning, where its text was asked for."),
      signature: string("State for the next turn. Sent back unchanged."),
    },
  },
  redacted_thinking: {
    name: "MessageRedactedThinking",
    fields: { data: string("State for the next turn. Sent back unchanged.") },
  },
  tool_use: {
    name: "MessageToolUse",
    fields: {
      id: string("Names the call in its `tool_result`."),
      name: string("The tool."),
      input: { ...anyObject, description: "The arguments." },
    },
  },
  server_tool_use: {
    name: "MessageServerToolUse",
    fields: {
      id: string("Names the call in its result."),
      name: string("The tool, which the upstream carried out."),
      input: { ...anyObject, description: "The arguments." },
    },
  },
  web_search_tool_result: resultOf("MessageWebSearchResult"),
  web_fetch_tool_result: resultOf("MessageWebFetchResult"),
  tool_search_tool_result: resultOf("MessageToolSearchResult"),
  code_execution_tool_result: resultOf("MessageCodeResult"),
  bash_code_execution_tool_result: resultOf("MessageBashCodeResult"),
  text_editor_code_execution_tool_result: resultOf("MessageEditorCodeResult"),
});

const deltas = taggedUnion("MessageDelta", "More of a block.", {
  text_delta: { name: "MessageTextDelta", fields: { text: string("More of the text.") } },
  thinking_delta: {
    name: "MessageThinkingDelta",
    fields: { thinking: string("More of the reasoning.") },
  },
  signature_delta: {
    name: "MessageSignatureDelta",
    fields: { signature: string("The state of a block of reasoning.") },
  },
  input_json_delta: {
    name: "MessageInputDelta",
    fields: { partial_json: string("More of the arguments, as JSON text.") },
  },
  citations_delta: {
    name: "MessageCitationsDelta",
    fields: { citation: { ...anyObject, description: "One more citation." } },
  },
});

const usage = component(
  "MessageUsage",
  fieldsOf(
    {
      input_tokens: integer("Input that was neither read from a cache nor written to one."),
      cache_creation_input_tokens: nullable(integer("Input that was written to a cache.")),
      cache_read_input_tokens: nullable(integer("Input that was read from a cache.")),
      "cache_creation?": nullable(
        fieldsOf({
          ephemeral_5m_input_tokens: integer("Kept for 5 minutes."),
          ephemeral_1h_input_tokens: integer("Kept for an hour."),
        }),
      ),
      output_tokens: integer("All output, thinking included."),
      "output_tokens_details?": nullable(
        fieldsOf({ thinking_tokens: integer("Of these, tokens of thinking.") }),
      ),
      "server_tool_use?": nullable(
        fieldsOf({
          "web_search_requests?": integer("Searches that the upstream carried out."),
          "web_fetch_requests?": integer("Pages that it fetched."),
        }),
      ),
      "service_tier?": stringOrNull("The tier that served it."),
      "estimated?": boolean(
        "True: counted by us, as the upstream reported none that can be right.",
      ),
      ...optional(costFields),
    },
    { description: "Tokens, and what they were charged." },
  ),
);

const ended: Fields = {
  stop_reason: nullable(
    string("Why it ended. Null: it has not.", {
      enum: [
        ...["end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "refusal"],
        "model_context_window_exceeded",
      ],
    }),
  ),
  stop_sequence: stringOrNull("The sequence at which the text ended."),
  "stop_details?": nullable({ ...anyObject, description: "Of a refusal." }),
};

const message = component(
  "Message",
  fieldsOf(
    {
      id: string("`msg_…`; found by `GET /generation`."),
      type: string("", { enum: ["message"] }),
      role: string("Who speaks.", { enum: ["assistant"] }),
      model: string("Model id."),
      content: arrayOf(ref("MessageBlock"), "What the model made."),
      ...ended,
      usage: ref("MessageUsage"),
    },
    { ...open, description: "An answer of `POST /messages`." },
  ),
);

const indexed = { index: integer("Of the block in `content`.") };
const events = taggedUnion("MessageEvent", "The `data` of one event. `message_stop` is the last.", {
  message_start: {
    name: "MessageStartEvent",
    fields: { message: ref("Message") },
    description: "Without content, and with the usage so far.",
  },
  content_block_start: {
    name: "MessageBlockStartEvent",
    fields: { ...indexed, content_block: ref("MessageBlock") },
  },
  content_block_delta: {
    name: "MessageBlockDeltaEvent",
    fields: { ...indexed, delta: ref("MessageDelta") },
  },
  content_block_stop: { name: "MessageBlockStopEvent", fields: indexed },
  message_delta: {
    name: "MessageDeltaEvent",
    fields: { delta: fieldsOf(ended), usage: ref("MessageUsage") },
    description: "The end of the message, and its whole usage.",
  },
  message_stop: { name: "MessageStopEvent", fields: {} },
  ping: { name: "MessagePingEvent", fields: {}, description: "A sign of life." },
  error: {
    name: "MessageErrorEvent",
    fields: {
      error: fieldsOf({
        type: string("The family of the error."),
        message: string("For people."),
        "code?": string("Machine code of an error."),
        "param?": stringOrNull("Path of the offending field."),
      }),
      "request_id?": string("The id of the request."),
    },
    description: "The end of a stream that broke.",
  },
});

const tool = component(
  "MessageTool",
  fieldsOf(
    {
      "type?": string(
        "`custom`, or a tool of Anthropic's own that the model takes, like `bash_20250124` or `web_search_20250305`.",
      ),
      name: string("Its name."),
      "description?": string("What it does."),
      "input_schema?": anyObject,
    },
    { ...open, description: "A tool that the caller or the upstream carries out." },
  ),
);

const inputMessage = component(
  "MessageInput",
  fieldsOf(
    {
      role: string("Who speaks.", { enum: ["user", "assistant", "system"] }),
      content: textOrBlocks(
        "Text, or blocks: `text`, `image`, `document`, `search_result` and `tool_result` of the user; `text`, `thinking` and " +
          "`tool_use` of the assistant. Images and PDFs by the model's `inputModalities`.",
      ),
    },
    { ...open, description: "A message of the conversation." },
  ),
);

/** Fields of a request of which the tokens are counted. */
const countedFields: Fields = {
  model: string("An active chat model."),
  messages: arrayOf(
    ref("MessageInput"),
    "The conversation, which ends with a message of the user.",
    {
      minItems: 1,
    },
  ),
  "system?": textOrBlocks(
    "Instructions, kept after the configured developer prompt: a text, or text blocks.",
  ),
  "tools?": arrayOf(ref("MessageTool"), "Tools that the caller carries out."),
  "tool_choice?": fieldsOf(
    { type: string("Whether a tool is called.", { enum: ["auto", "any", "tool", "none"] }) },
    open,
  ),
  "thinking?": fieldsOf(
    { type: string("Whether the model thinks.", { enum: ["enabled", "adaptive", "disabled"] }) },
    open,
  ),
  "output_config?": fieldsOf(
    { "effort?": string("One of the model's, or the nearest that it has.") },
    open,
  ),
};

const request = component(
  "MessageRequest",
  fieldsOf(
    {
      ...countedFields,
      max_tokens: integer(
        "The bound of the output. Above 4,096 it may fall to what the balance pays for, never below 4,096, and " +
          "`x-genmesh-max-tokens` names it then. 0 at an upstream that speaks Messages only fills its cache.",
        { minimum: 0 },
      ),
      "stop_sequences?": arrayOf({ type: "string" }, "Sequences at which the text ends."),
      ...optional({ temperature: number("Of sampling."), top_p: number("Of sampling.") }),
      "stream?": boolean("True: server-sent events.", { default: false }),
    },
    {
      ...open,
      description: "A request of `POST /messages`.",
      example: {
        model: "chat-1",
        max_tokens: 1024,
        messages: [{ role: "user", content: "Say hello." }],
      },
    },
  ),
);

const countRequest = component(
  "MessageCountRequest",
  fieldsOf(countedFields, {
    ...open,
    description: "A request of `POST /messages/count_tokens`.",
  }),
);

/** Components of `POST /messages` and `POST /messages/count_tokens`. */
export const messageComponents: readonly Schema[] = [
  ...[request, countRequest, inputMessage, tool, message, usage],
  ...[...blocks, ...events, ...deltas],
];
