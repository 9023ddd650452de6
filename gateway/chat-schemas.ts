// Describes Chat Completions for the OpenAPI document. Nothing is validated by it: the text service reads bodies.

import {
  anyObject,
  arrayOf,
  boolean,
  component,
  costFields,
  errorFields,
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
} from "./schemas.ts";

const textCall = fieldsOf({
  name: string("The tool."),
  arguments: string("The arguments, as JSON text."),
});

const toolCall = component(
  "ChatToolCall",
  fieldsOf(
    {
      id: string("Names the call in the message of its answer."),
      type: string("Kind of tool.", { enum: ["function", "custom"] }),
      "function?": textCall,
      "custom?": fieldsOf({ name: string("The tool."), input: string("The input, as free text.") }),
    },
    { ...open, description: "A call of a tool of the caller's." },
  ),
);

const annotation = fieldsOf({
  type: string("`url_citation`."),
  "url_citation?": fieldsOf({
    start_index: integer("Of the text."),
    end_index: integer("Of the text."),
    title: string("Of the page."),
    url: string("Of the page."),
  }),
});

const said: Fields = {
  refusal: stringOrNull("Why the model refuses."),
  "reasoning_content?": stringOrNull("The reasoning, where the model shows it."),
  "reasoning_details?": arrayOf(anyObject, "State for the next turn. Sent back unchanged."),
  "annotations?": arrayOf(annotation, "Citations of a search."),
};

const message = component(
  "ChatMessage",
  fieldsOf(
    {
      role: string("Who speaks.", { enum: ["assistant"] }),
      content: stringOrNull("The text."),
      ...said,
      "tool_calls?": arrayOf(ref("ChatToolCall"), "Calls of tools."),
    },
    { ...open, description: "A message of the model's." },
  ),
);

const delta = component(
  "ChatDelta",
  fieldsOf(
    {
      ...optional({ role: string("Who speaks.", { enum: ["assistant"] }) }),
      ...optional({ content: stringOrNull("More of the text."), refusal: said.refusal ?? {} }),
      "reasoning_content?": stringOrNull("More of the reasoning."),
      "reasoning_details?": arrayOf(anyObject, "State for the next turn."),
      "annotations?": arrayOf(annotation, "Citations of a search."),
      "tool_calls?": arrayOf(
        fieldsOf(
          {
            index: integer("Of the call in the message."),
            "id?": string("Of a call that begins."),
            "type?": string("Kind of tool.", { enum: ["function", "custom"] }),
            "function?": fieldsOf({
              "name?": string("The tool."),
              "arguments?": string("More of the arguments."),
            }),
          },
          open,
        ),
        "More of calls.",
      ),
    },
    { ...open, description: "The piece of a message that a chunk adds." },
  ),
);

const counts = (words: string) => integer(`Of these, tokens ${words}.`);
const usage = component(
  "ChatUsage",
  fieldsOf(
    {
      prompt_tokens: integer("All input, cached input included."),
      completion_tokens: integer("All output, reasoning included."),
      total_tokens: integer("Both."),
      "prompt_tokens_details?": fieldsOf({
        "cached_tokens?": counts("read from a cache"),
        "cache_write_tokens?": counts("written to a cache"),
        "audio_tokens?": counts("of sound"),
        "image_tokens?": counts("of images"),
        "text_tokens?": counts("of text"),
      }),
      "completion_tokens_details?": fieldsOf({
        "reasoning_tokens?": counts("of reasoning"),
        "accepted_prediction_tokens?": counts("of an accepted prediction"),
        "rejected_prediction_tokens?": counts("of a rejected prediction"),
        "audio_tokens?": counts("of sound"),
        "image_tokens?": counts("of images"),
        "text_tokens?": counts("of text"),
      }),
      "estimated?": boolean(
        "True: counted by us, as the upstream reported none that can be right.",
      ),
      ...optional(costFields),
    },
    { description: "Tokens, and what they were charged." },
  ),
);

const finish = {
  enum: ["stop", "length", "tool_calls", "content_filter", "function_call"],
};
const logprobs = nullable({ ...anyObject, description: "Where they were asked for." });
const head: Fields = {
  id: string("`chatcmpl-…`; found by `GET /generation`."),
  created: integer("Unix seconds."),
  model: string("Model id."),
  "service_tier?": stringOrNull("The tier that served it."),
  "system_fingerprint?": stringOrNull("The upstream's."),
};

const completion = component(
  "ChatCompletion",
  fieldsOf(
    {
      ...head,
      object: string("", { enum: ["chat.completion"] }),
      choices: arrayOf(
        fieldsOf({
          index: integer("0."),
          message: ref("ChatMessage"),
          "logprobs?": logprobs,
          finish_reason: string("Why it ended.", finish),
        }),
        "One.",
      ),
      "usage?": ref("ChatUsage"),
    },
    { description: "An answer of `POST /chat/completions`." },
  ),
);

const chunk = component(
  "ChatCompletionChunk",
  fieldsOf(
    {
      ...head,
      object: string("", { enum: ["chat.completion.chunk"] }),
      choices: arrayOf(
        fieldsOf({
          index: integer("0."),
          delta: ref("ChatDelta"),
          "logprobs?": logprobs,
          finish_reason: nullable(string("In the last one: why it ended.", finish)),
        }),
        "One; none in the chunk with the usage.",
      ),
      "usage?": {
        anyOf: [ref("ChatUsage"), { type: "null" }],
        description: "In the last chunk, where `stream_options.include_usage` asks for it.",
      },
      "obfuscation?": string("Padding that hides the length of a delta."),
    },
    { description: "A piece of an answer." },
  ),
);

const failed = component(
  "ChatStreamError",
  fieldsOf(
    { error: fieldsOf({ ...errorFields, ...optional({ status: number("HTTP status.") }) }, open) },
    { description: "The end of a stream that broke. No `[DONE]` follows it." },
  ),
);

const event = component("ChatEvent", {
  description: "The `data` of one event. `data: [DONE]` ends the stream.",
  oneOf: [ref("ChatCompletionChunk"), ref("ChatStreamError")],
});

const content: Schema = {
  description:
    "Text, or text parts, which are joined. In a user's message, by the model's `inputModalities`: `file` " +
    "(`file: {filename, file_data}`, a PDF as a data URI) and `input_audio` (`input_audio: {data, format}`, base64 of a " +
    "`wav` or `mp3`). Images go through `POST /responses`.",
  anyOf: [{ type: "string" }, { type: "array", items: anyObject }, { type: "null" }],
};

const inputMessage = component(
  "ChatInputMessage",
  fieldsOf(
    {
      role: string("Who speaks.", { enum: ["system", "developer", "user", "assistant", "tool"] }),
      "content?": content,
      "tool_calls?": arrayOf(ref("ChatToolCall"), "Of the assistant: calls of tools."),
      "tool_call_id?": string("Of a tool: the call that this answers."),
    },
    { ...open, description: "A message of the conversation." },
  ),
);

const request = component(
  "ChatCompletionRequest",
  fieldsOf(
    {
      model: string("An active chat model."),
      messages: arrayOf(ref("ChatInputMessage"), "The conversation.", { minItems: 1 }),
      "instructions?": string("Kept after the configured developer prompt."),
      "reasoning_effort?": string("As `reasoning.effort`."),
      "max_completion_tokens?": nullable(
        integer("As `max_output_tokens` of a response. `max_tokens` is the same.", { minimum: 1 }),
      ),
      "temperature?": nullable(number("Of sampling.")),
      "top_p?": nullable(number("Of sampling.")),
      "tools?": arrayOf(anyObject, "Tools that the caller carries out."),
      "tool_choice?": {
        description: "Which tool is called.",
        anyOf: [{ type: "string" }, anyObject],
      },
      "response_format?": { ...anyObject, description: "The form of the text." },
      "stop?": {
        description: "Sequences at which the text ends; they are not part of it.",
        anyOf: [{ type: "string" }, { type: "array", items: { type: "string" } }],
      },
      "stream?": boolean("True: server-sent events.", { default: false }),
      "stream_options?": fieldsOf(
        { "include_usage?": boolean("True: a last chunk with the usage.") },
        open,
      ),
      "n?": integer("Only 1.", { const: 1, default: 1 }),
    },
    {
      ...open,
      description: "A request of `POST /chat/completions`.",
      example: { model: "chat-1", messages: [{ role: "user", content: "Say hello." }] },
    },
  ),
);

/** Components of `POST /chat/completions`. */
export const chatComponents: readonly Schema[] = [
  ...[request, inputMessage, completion, message, toolCall, usage],
  ...[event, chunk, delta, failed],
];
