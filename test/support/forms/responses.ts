import { type AnswerForm, inParis } from "./form.ts";

const paris = JSON.stringify(inParis);
const usage = { input_tokens: 1000, output_tokens: 10, total_tokens: 1010 };
const message = (text: string) => ({
  type: "message",
  id: "msg_1",
  status: "completed",
  role: "assistant",
  content: [{ type: "output_text", text, annotations: [], logprobs: [] }],
});
const call = (args: unknown) => ({
  type: "function_call",
  id: "fc_1",
  call_id: "call_1",
  name: "look",
  status: "completed",
  arguments: args,
});
const response = (output: unknown[], more: object = {}) => ({
  id: "resp_1",
  object: "response",
  created_at: 1_760_000_000,
  status: "completed",
  model: "up",
  output,
  usage,
  ...more,
});
const begun = {
  type: "response.created",
  response: response([], { status: "in_progress", usage: null }),
};
const completed = (output: unknown[]) => ({
  type: "response.completed",
  response: response(output),
});
const added = (index: number, item: unknown) => ({
  type: "response.output_item.added",
  output_index: index,
  item,
});
const done = (index: number, item: unknown) => ({
  type: "response.output_item.done",
  output_index: index,
  item,
});
const delta = (index: number, text: string) => ({
  type: "response.output_text.delta",
  item_id: "msg_1",
  output_index: index,
  content_index: 0,
  delta: text,
});
const argsDone = (index: number, args: unknown) => ({
  type: "response.function_call_arguments.done",
  item_id: "fc_1",
  output_index: index,
  arguments: args,
});

const called = { text: "", calls: [["look", paris]], finish: "tool_calls" } as const;
const both = { ...called, text: "one two" };
const saidOnly = { text: "one two", calls: [], finish: "stop" } as const;

/** Forms of the Responses protocol. */
export const responsesForms: readonly AnswerForm[] = [
  {
    name: "responses: arguments as an object",
    upstream: "responses",
    events: [
      begun,
      added(0, call("")),
      argsDone(0, inParis),
      done(0, call(inParis)),
      completed([call(inParis)]),
    ],
    json: response([call(inParis)]),
    says: called,
  },
  {
    name: "responses: arguments as an object from the first event on, and null in the last",
    upstream: "responses",
    events: [
      begun,
      added(0, call(inParis)),
      argsDone(0, null),
      done(0, call(null)),
      completed([call(null)]),
    ],
    json: response([call(inParis)]),
    says: called,
  },
  {
    name: "responses: arguments as an object in the last event alone",
    upstream: "responses",
    events: [begun, completed([call(inParis)])],
    json: response([call(inParis)]),
    says: called,
  },
  {
    name: "responses: arguments as an object in a delta",
    upstream: "responses",
    events: [
      begun,
      added(0, call(null)),
      {
        type: "response.function_call_arguments.delta",
        item_id: "fc_1",
        output_index: 0,
        delta: inParis,
      },
      completed([]),
    ],
    json: response([call(inParis)]),
    says: called,
  },
  {
    name: "responses: another order at the end, an index that begins at 5, null items",
    upstream: "responses",
    events: [
      begun,
      added(4, null),
      done(4, null),
      added(5, { ...message(""), content: [] }),
      delta(5, "one "),
      added(7, call("")),
      delta(5, "two"),
      done(5, message("one two")),
      argsDone(7, paris),
      done(7, call(paris)),
      added(8, null),
      completed([call(paris), null, message("one two"), null]),
    ],
    json: response([null, message("one two"), null, call(paris)]),
    says: both,
  },
  {
    name: "responses: an item that the last event leaves out, and one that it adds",
    upstream: "responses",
    events: [
      begun,
      added(0, { type: "reasoning", id: "rs_1", summary: [] }),
      done(0, { type: "reasoning", id: "rs_1", summary: [] }),
      added(1, { ...message(""), content: [] }),
      delta(1, "one two"),
      done(1, message("one two")),
      completed([call(paris), message("one two")]),
    ],
    json: response([message("one two"), call(paris)]),
    says: both,
  },
  {
    name: "responses: signs of life",
    upstream: "responses",
    events: [
      "data:\n\n",
      "event: ping\ndata: {}\n\n",
      begun,
      "event: ping\ndata:\n\n",
      "data: {}\n\n",
      delta(0, "one "),
      "event: keepalive\ndata:\n\n",
      'event: keepalive\ndata: {"type":"keepalive"}\n\n',
      "event: ping\ndata: 2026-11-27\n\n",
      'data: {"type":"ping"}\n\n',
      delta(0, "two"),
      completed([message("one two")]),
    ],
    json: response([message("one two")]),
    says: saidOnly,
  },
];
