import {
  arrayOf,
  boolean,
  errors,
  idempotencyHeader,
  integer,
  object,
  type RouteSchema,
  type Schema,
  string,
} from "./common.ts";

const textErrors = errors(400, 402, 413, 415, 422, 502, 504);

const responseRequest = object(
  {
    model: string("An active chat model."),
    input: {
      description: "Text, messages, or Responses items such as `function_call_output`.",
      anyOf: [{ type: "string" }, { type: "array", items: { type: "object" } }],
    },
    instructions: string("Kept after the configured developer prompt."),
    max_output_tokens: integer(
      "Most tokens of output, reasoning and calls included. What goes past it is cut, and the answer is `incomplete`.",
      { minimum: 1 },
    ),
    reasoning: object({
      effort: string("One of the model's `reasoningEfforts`, or an alias in any case."),
    }),
    tools: arrayOf({ type: "object" }, "Function tools, `{type: web_search}`, …"),
    stream: boolean("True: server-sent events.", { default: false }),
  },
  ["model", "input"],
  { additionalProperties: true, example: { model: "chat-1", input: "Say hello." } },
);

const chatRequest = object(
  {
    model: string("An active chat model."),
    messages: arrayOf(
      object(
        {
          role: string("Who speaks.", {
            enum: ["system", "developer", "user", "assistant", "tool"],
          }),
          content: string("Text. Images go through `POST /responses`."),
        },
        ["role"],
        { additionalProperties: true },
      ),
      "The conversation.",
      { minItems: 1 },
    ),
    reasoning_effort: string("As `reasoning.effort`."),
    stream: boolean("True: server-sent events.", { default: false }),
    n: integer("Only 1.", { const: 1, default: 1 }),
  },
  ["model", "messages"],
  {
    additionalProperties: true,
    example: { model: "chat-1", messages: [{ role: "user", content: "Say hello." }] },
  },
);

const answer = (description: string, name: string): Schema => ({
  description,
  content: {
    "application/json": { schema: object({ object: string("", { enum: [name] }) }) },
    "text/event-stream": { schema: string("Events, ended by `data: [DONE]`.") },
  },
});

export const createResponseSchema: RouteSchema = {
  operationId: "createResponse",
  summary: "Create a response",
  description:
    "With `stream` true: `response.created`, `response.output_item.added`, `response.output_text.delta`, " +
    "`response.output_text.done`, … up to `response.completed`, `response.incomplete` or `response.failed`. Closing " +
    "the connection cancels the request upstream. `usage.estimated` is true where the upstream reported no usage that can " +
    "be right: then it is our count, which is charged.",
  tags: ["Text"],
  headers: idempotencyHeader,
  body: responseRequest,
  response: { 200: answer("The response.", "response"), ...textErrors },
};

export const compactSchema: RouteSchema = {
  operationId: "compactConversation",
  summary: "Compact a conversation",
  description: "`output` is sent unchanged as `input` of the next `POST /responses`.",
  tags: ["Text"],
  headers: idempotencyHeader,
  body: responseRequest,
  response: {
    200: {
      description: "The compacted items.",
      content: {
        "application/json": {
          schema: object({ output: arrayOf({ type: "object" }, "Items.") }, ["output"]),
        },
      },
    },
    ...textErrors,
  },
};

export const chatCompletionSchema: RouteSchema = {
  operationId: "createChatCompletion",
  summary: "Create a chat completion",
  description:
    "Text only. With `stream` true: OpenAI's chunks, ended by `data: [DONE]`. `usage.estimated` as in a response.",
  tags: ["Text"],
  headers: idempotencyHeader,
  body: chatRequest,
  response: { 200: answer("The completion.", "chat.completion"), ...textErrors },
};
