// Describes the body of a response for the OpenAPI document. Nothing is validated by it: the text service reads bodies.

import {
  anyObject,
  arrayOf,
  boolean,
  component,
  fieldsOf,
  integer,
  nullable,
  number,
  open,
  ref,
  type Schema,
  string,
  stringOrNull,
} from "./schemas.ts";

const inputMessage = component(
  "InputMessage",
  fieldsOf(
    {
      "type?": string("", { enum: ["message"] }),
      role: string("Who speaks.", { enum: ["user", "assistant", "system", "developer"] }),
      content: {
        description:
          "A text, or parts: `input_text`; `input_image` on models whose `inputModalities` have `image`; `input_file` (`filename`, and " +
          "a PDF as `file_data`, a data URI, or at `file_url`; `detail`) where they have `pdf`; `input_audio` (`input_audio: {data, " +
          "format}`, base64 of a `wav` or `mp3`) where they have `audio`. Another is 400 `unsupported_content_type`.",
        anyOf: [{ type: "string" }, { type: "array", items: ref("InputPart") }],
      },
    },
    { ...open, description: "A message of the conversation." },
  ),
);

const inputPart = component(
  "InputPart",
  fieldsOf(
    {
      type: string("`input_text`, `input_image`, `input_file`, `input_audio`; `output_text`."),
      "text?": string("Of a text."),
      "image_url?": stringOrNull("Of an image: a public HTTPS URL, or a data URI."),
      "detail?": stringOrNull("Of an image: `auto`, `low` or `high`."),
      "filename?": string("Of a file."),
      "file_data?": string("Of a file: a data URI."),
      "file_url?": string("Of a file: its address."),
      "input_audio?": fieldsOf({
        data: string("Base64."),
        format: string("Of the sound.", { enum: ["wav", "mp3"] }),
      }),
    },
    { ...open, description: "A part of a message." },
  ),
);

const request = component(
  "ResponseRequest",
  fieldsOf(
    {
      model: string("An active chat model."),
      input: {
        description:
          "Text, messages, or Responses items such as `function_call_output` and those of an earlier `output`.",
        anyOf: [
          { type: "string" },
          { type: "array", items: { anyOf: [ref("InputMessage"), anyObject] } },
        ],
      },
      "instructions?": stringOrNull("Kept after the configured developer prompt."),
      "max_output_tokens?": nullable(
        integer(
          "Most tokens of output, reasoning and calls included. What goes past it is cut, and the answer is `incomplete`. " +
            "Omitted: the model's maximum, or what balance and key can pay for, at least 1,024.",
          { minimum: 1 },
        ),
      ),
      "reasoning?": nullable(
        fieldsOf(
          {
            "effort?": stringOrNull("One of the model's `reasoningEfforts`, or an alias."),
            "summary?": stringOrNull("`auto`, `concise` or `detailed`."),
          },
          open,
        ),
      ),
      "tools?": arrayOf(anyObject, "Function tools, `{type: web_search}`, …"),
      "tool_choice?": {
        description: "Which tool is called.",
        anyOf: [{ type: "string" }, anyObject],
      },
      "parallel_tool_calls?": nullable(boolean("Several calls in one answer?")),
      "temperature?": nullable(number("Of sampling.")),
      "top_p?": nullable(number("Of sampling.")),
      "text?": fieldsOf(
        { "format?": { ...anyObject, description: "Also a JSON schema." } },
        { ...open, description: "The form of the text." },
      ),
      "metadata?": nullable({ ...anyObject, description: "Repeated in the answer." }),
      "include?": nullable(arrayOf({ type: "string" }, "More in the answer.")),
      "stream?": nullable(boolean("True: server-sent events.", { default: false })),
      "starting_after?": integer(
        "With the `Idempotency-Key` of a stream that broke off: its events behind this `sequence_number`. 400 where that stream is " +
          "over, or was never there.",
        { minimum: 0 },
      ),
    },
    {
      ...open,
      description: "A request of `POST /responses`, a compaction, or a count.",
      example: { model: "chat-1", input: "Say hello." },
    },
  ),
);

/** Components of the body of a response, a compaction and a count. */
export const responseRequestComponents: readonly Schema[] = [request, inputMessage, inputPart];
