import { expect, test } from "vitest";
import { UpstreamError } from "./errors.ts";
import { createSseParser, dataOf, type SseEvent } from "./sse.ts";

const limit = { maxEventBytes: 1 << 20 };

type Plain = { name: string; data: string; frame: string | undefined };

function plain(event: SseEvent): Plain {
  return { name: event.name, data: dataOf(event).toString(), frame: event.frame?.toString() };
}

/** Parses chunks. Each is overwritten with its own copy, so events that are views of earlier ones must not change. */
function parseChunks(chunks: readonly Buffer[], maxEventBytes = limit.maxEventBytes): Plain[] {
  const parser = createSseParser({ maxEventBytes });
  const events: SseEvent[] = [];
  for (const chunk of chunks) events.push(...parser.push(chunk));
  const last = parser.end();
  if (last) events.push(last);
  // Read at the very end: the events must still hold the same bytes.
  return events.map(plain);
}

const withoutFrames = (events: Plain[]) => events.map(({ name, data }) => ({ name, data }));

const messy = [
  "\uFEFFdata: bom\n\n",
  ": a comment\n\n",
  'event: response.output_text.delta\ndata: {"delta":"größe 🦊 漢字"}\n\n',
  "data: one\ndata: two\ndata:\n\n",
  "id: 7\r\nevent: x\r\ndata: crlf\r\n\r\n",
  "event: lone\rdata: cr\r\r",
  "data:no space\nretry: 10\n\n",
  "event: nothing\n\n",
  "data\n\n",
  "dataset: not data\nevents: not event\ndata:  two spaces\n\n",
  "data: [DONE]\n\n",
].join("");

const expected = [
  { name: "", data: "bom" },
  { name: "response.output_text.delta", data: '{"delta":"größe 🦊 漢字"}' },
  { name: "", data: "one\ntwo\n" },
  { name: "x", data: "crlf" },
  { name: "lone", data: "cr" },
  { name: "", data: "no space" },
  { name: "", data: "" },
  { name: "", data: " two spaces" },
  { name: "", data: "[DONE]" },
];

test("fields, comments, line ends and joined data follow the standard", () => {
  expect(withoutFrames(parseChunks([Buffer.from(messy)]))).toEqual(expected);
});

test("every position of one split gives the same events", () => {
  const bytes = Buffer.from(messy);
  for (let at = 0; at <= bytes.length; at++) {
    const chunks = [bytes.subarray(0, at), bytes.subarray(at)];
    expect(withoutFrames(parseChunks(chunks)), `split at ${at}`).toEqual(expected);
  }
});

test("single bytes and every chunk size give the same events", () => {
  const bytes = Buffer.from(messy);
  for (let size = 1; size < 40; size++) {
    const chunks = [];
    for (let at = 0; at < bytes.length; at += size) chunks.push(bytes.subarray(at, at + size));
    expect(withoutFrames(parseChunks(chunks)), `chunks of ${size}`).toEqual(expected);
  }
});

test("a frame is given only where the bytes can be passed on as they are", () => {
  const cases: [string, string | undefined][] = [
    ["event: a\ndata: 1\n\n", "event: a\ndata: 1\n\n"],
    ["data: 1\n\n", "data: 1\n\n"],
    ["data:1\n\n", undefined],
    ["event: a\r\ndata: 1\r\n\r\n", undefined],
    ["data: 1\nevent: a\n\n", undefined],
    ["event: \ndata: 1\n\n", undefined],
    ["id: 3\nevent: a\ndata: 1\n\n", undefined],
    [": hm\nevent: a\ndata: 1\n\n", undefined],
    ["data: 1\ndata: 2\n\n", undefined],
    ["data: 1\n", undefined],
  ];
  for (const [text, frame] of cases) {
    expect(
      parseChunks([Buffer.from(text)]).map((event) => event.frame),
      text,
    ).toEqual([frame]);
  }
});

test("frames survive splits and a keep-alive comment before them", () => {
  const frame = 'event: a\ndata: {"x":"é"}\n\n';
  const bytes = Buffer.from(`: ping\n\n${frame}${frame}`);
  for (let at = 0; at <= bytes.length; at++) {
    const events = parseChunks([bytes.subarray(0, at), bytes.subarray(at)]);
    expect(
      events.map((event) => event.frame),
      `split at ${at}`,
    ).toEqual([frame, frame]);
  }
});

test("whole events in one chunk are views of it, not copies", () => {
  const chunk = Buffer.from("event: a\ndata: 1\n\nevent: b\ndata: 2\n\n");
  const [first] = createSseParser(limit).push(chunk);
  expect(first?.frame?.buffer).toBe(chunk.buffer);
});

test("a name is each event's own, whichever came before it", () => {
  const long = "n".repeat(200);
  const names = [
    "delta",
    "delta",
    "done",
    "delta",
    "dell",
    "größe",
    "größe",
    long,
    long,
    "",
    "done",
  ];
  const bytes = Buffer.from(names.map((name) => `event: ${name}\ndata: 1\n\n`).join(""));
  expect(parseChunks([bytes]).map(({ name }) => name)).toEqual(names);
  // In Latin-1 a byte of its own is the letter that takes two in UTF-8.
  const latin = Buffer.from("event: \u00e9\ndata: 1\n\n", "latin1");
  const [utf, broken] = parseChunks([Buffer.from("event: \u00e9\ndata: 1\n\n"), latin]);
  expect([utf?.name, broken?.name]).toEqual(["\u00e9", "\ufffd"]);
});

test("an event that is all of its chunk has the chunk as its frame, and none of the next one's bytes", () => {
  const chunks = ["event: a\ndata: 1\n\n", "event: a\ndata: 22\n\n"].map((text) =>
    Buffer.from(text),
  );
  const parser = createSseParser(limit);
  const events = chunks.flatMap((chunk) => parser.push(chunk));
  expect(events.map(({ frame }) => frame)).toEqual(chunks);
  expect(events.map((event) => dataOf(event).toString())).toEqual(["1", "22"]);
});

test("an event past the limit is refused, whole or in pieces", () => {
  const long = Buffer.from(`data: ${"x".repeat(5000)}`);
  expect(() => parseChunks([long], 1000)).toThrow(UpstreamError);
  const pieces = Array.from({ length: 50 }, (_, i) => long.subarray(i * 100, i * 100 + 100));
  expect(() => parseChunks(pieces, 1000)).toThrow(/too_large/);
});

test("one event in very many chunks costs linear time", () => {
  const parser = createSseParser({ maxEventBytes: 1 << 26 });
  parser.push(Buffer.from("data: "));
  const piece = Buffer.alloc(1024, "y");
  for (let i = 0; i < 16_384; i++) parser.push(piece);
  const [event] = parser.push(Buffer.from("\n\n"));
  expect(event && dataOf(event).length).toBe(1 << 24);
});
