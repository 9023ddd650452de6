import { type AnswerForm, begun, chunk, completion, inParis, piece, used } from "./form.ts";

const look = { id: "call_1", name: "look" };
const find = { id: "call_2", name: "find" };
const paris = JSON.stringify(inParis);
const rome = '{"city":"Rome"}';
const called = { text: "", calls: [["look", paris]], finish: "tool_calls" } as const;
const twice = {
  ...called,
  calls: [
    ["look", paris],
    ["find", rome],
  ],
} as const;
const fn = (name: string, args: unknown) => ({ function: { name, arguments: args } });
const pieces = (...calls: object[]) => chunk({ tool_calls: calls });
const json = (...calls: object[]) => completion({ content: null, tool_calls: calls }, "stop");
const right = json(
  { id: "call_1", type: "function", ...fn("look", paris) },
  { id: "call_2", type: "function", ...fn("find", rome) },
);

/** Forms of the calls of a chat completion. */
export const callForms: readonly AnswerForm[] = [
  {
    name: "arguments as an object",
    upstream: "chat",
    events: [begun, pieces(piece(0, inParis, look)), chunk({}, "tool_calls"), used],
    json: json({ id: "call_1", type: "function", ...fn("look", inParis) }),
    says: called,
  },
  {
    name: "arguments that are null at first",
    upstream: "chat",
    events: [
      begun,
      pieces(piece(0, null, look)),
      pieces(piece(0, inParis)),
      chunk({}, "tool_calls"),
      used,
    ],
    json: json({ id: "call_1", type: "function", ...fn("look", inParis) }),
    says: called,
  },
  {
    name: "no arguments at all",
    upstream: "chat",
    events: [begun, pieces(piece(0, null, look)), chunk({}, "tool_calls"), used],
    json: json({ id: "call_1", type: "function", ...fn("look", null) }),
    says: { ...called, calls: [["look", ""]] },
  },
  {
    name: "whole calls without index, id and type",
    upstream: "chat",
    events: [
      chunk({ role: "assistant", tool_calls: [fn("look", paris)] }),
      pieces({ id: "", ...fn("find", rome) }),
      chunk({}, "stop"),
      used,
    ],
    json: json(fn("look", paris), { id: "", ...fn("find", rome) }),
    says: twice,
  },
  {
    name: "ids without an index",
    upstream: "chat",
    events: [
      begun,
      pieces({ id: "call_1", ...fn("look", "") }),
      pieces({ function: { arguments: paris.slice(0, 5) } }),
      pieces({ id: "call_1", function: { arguments: paris.slice(5) } }),
      pieces({ id: "call_2", ...fn("find", rome.slice(0, 5)) }),
      pieces({ function: { arguments: rome.slice(5) } }),
      chunk({}, "stop"),
      used,
    ],
    json: right,
    says: twice,
  },
  {
    name: "two ids under one index",
    upstream: "chat",
    events: [begun, pieces(piece(0, paris, look), piece(0, rome, find)), chunk({}, "stop"), used],
    json: right,
    says: twice,
  },
  {
    name: "whole calls under one index without an id",
    upstream: "chat",
    events: [
      begun,
      pieces({ index: 0, ...fn("look", paris) }),
      pieces({ index: 0, ...fn("find", rome) }),
      chunk({}, "stop"),
      used,
    ],
    json: right,
    says: twice,
  },
  {
    name: "a new id and the name in each piece",
    upstream: "chat",
    events: [
      begun,
      pieces({ index: 0, id: "a", type: "function", ...fn("look", "") }),
      pieces({ index: 0, id: "b", function: { arguments: paris.slice(0, 5) } }),
      pieces({ index: 0, ...fn("look", paris.slice(5)) }),
      chunk({}, "stop"),
      used,
    ],
    json: json({ type: "function", ...fn("look", paris) }),
    says: called,
  },
  {
    name: "an index that begins at 3, and pieces that take turns",
    upstream: "chat",
    events: [
      begun,
      pieces(piece(3, "", look), piece(5, "", find)),
      pieces(piece(3, paris.slice(0, 5)), piece(5, rome.slice(0, 5))),
      pieces(piece(5, rome.slice(5)), piece(3, paris.slice(5))),
      chunk({}, "tool_calls"),
      used,
    ],
    json: right,
    says: twice,
  },
  {
    name: "a name behind its id",
    upstream: "chat",
    events: [
      begun,
      pieces({ index: 0, id: "call_1", type: "function" }),
      pieces({ index: 0, function: { arguments: paris.slice(0, 5) } }),
      pieces({ index: 0, function: { name: "look" } }),
      pieces({ index: "0", function: { arguments: paris.slice(5) } }),
      chunk({}, "stop"),
      used,
    ],
    json: json(null as unknown as object, { id: "call_1", ...fn("look", paris) }),
    says: called,
  },
];
