import {
  type AnswerForm,
  begun,
  chatUsage,
  chunk,
  completion,
  inParis,
  piece,
  used,
} from "./form.ts";

const look = { id: "call_1", name: "look" };
const paris = JSON.stringify(inParis);
const said = (text: string, finish: "stop" | "length" = "stop") => ({ text, calls: [], finish });
const called = { text: "", calls: [["look", paris]], finish: "tool_calls" } as const;
const whole = (text: string, reason: unknown = "stop") => completion({ content: text }, reason);
const callOf = (args: unknown) => ({
  id: "call_1",
  type: "function",
  function: { name: "look", arguments: args },
});

/** Forms of chunks: reasons, empty chunks and those that keep a connection open. */
export const chunkForms: readonly AnswerForm[] = [
  {
    name: "empty reasons",
    upstream: "chat",
    events: [
      chunk({ role: "assistant", content: "one " }, ""),
      chunk({ content: "two" }, ""),
      chunk({ content: "" }, "stop"),
      used,
    ],
    json: whole("one two", ""),
    says: said("one two"),
  },
  {
    name: "empty reasons of a call",
    upstream: "chat",
    events: [
      chunk({ role: "assistant", content: null, tool_calls: [piece(0, "", look)] }, ""),
      chunk({ tool_calls: [piece(0, paris)] }, ""),
      chunk({}, "tool_calls"),
      used,
    ],
    json: completion({ content: null, tool_calls: [callOf(paris)] }, ""),
    says: called,
  },
  {
    name: "text beside the reason, and the reason again",
    upstream: "chat",
    events: [
      begun,
      chunk({ content: "one " }),
      chunk({ content: "two" }, "stop"),
      { ...chunk({}, "stop"), usage: chatUsage },
    ],
    json: whole("one two"),
    says: said("one two"),
  },
  {
    name: "text behind the reason, and another reason",
    upstream: "chat",
    events: [
      begun,
      chunk({ content: "one " }, "stop"),
      chunk({ content: "two" }),
      chunk({}, "length"),
      used,
    ],
    json: whole("one two", "length"),
    says: said("one two", "length"),
  },
  {
    name: "a call beside the reason",
    upstream: "chat",
    events: [
      chunk({ role: "assistant", tool_calls: [piece(0, paris, look)] }, "tool_calls"),
      chunk({}, "stop"),
      used,
    ],
    json: completion({ content: null, tool_calls: [callOf(paris)] }, "stop"),
    says: called,
  },
  ...[{}, { choices: null }].map((choices, at) => ({
    name: `usage without choices ${at}`,
    upstream: "chat" as const,
    events: [
      begun,
      chunk({ content: "one two" }),
      chunk({}, "stop"),
      {
        id: "u",
        object: "chat.completion.chunk",
        created: 5,
        model: "up",
        ...choices,
        usage: chatUsage,
      },
    ],
    json: whole("one two"),
    says: said("one two"),
  })),
  {
    name: "usage without choices before the reason",
    upstream: "chat",
    events: [
      { model: "up", choices: null },
      begun,
      { usage: chatUsage },
      chunk({ content: "one two" }),
      chunk({}, "stop"),
    ],
    json: whole("one two"),
    says: said("one two"),
  },
  {
    name: "choices without a delta",
    upstream: "chat",
    events: [
      { id: "", object: "", created: 0, model: "", choices: [], prompt_filter_results: [{}] },
      {
        id: "",
        object: "",
        created: 0,
        model: "",
        choices: [{ index: 0, finish_reason: null, content_filter_offsets: {} }],
      },
      "data: {}\n\n",
      { ...begun, id: "", created: 0 },
      chunk({ content: "one " }),
      chunk(null),
      chunk({ content: "two" }),
      chunk(undefined, "stop"),
      { ...chunk(undefined), id: "", object: "", created: 0, model: "", usage: chatUsage },
    ],
    json: { ...whole("one two"), id: "", created: 0 },
    says: said("one two"),
  },
  {
    name: "signs of life",
    upstream: "chat",
    events: [
      "data:\n\n",
      "event: ping\ndata:\n\n",
      begun,
      'event: ping\ndata: {"time":1}\n\n',
      chunk({ content: "one " }),
      "event: ping\ndata: 2026-11-27\n\n",
      "event: ping\n\n",
      "event: keepalive\ndata: {}\n\n",
      "event: keepalive\ndata: \n\n",
      'data: {"type":"ping"}\n\n',
      chunk({ content: "two" }, "stop"),
      "data: \n\n",
      used,
    ],
    json: whole("one two"),
    says: said("one two"),
  },
];
