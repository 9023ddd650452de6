/** One server-sent event, or a comment, in the form of a client. */
export interface SseEvent {
  /** The `event:` line. Undefined where there is none. */
  name: string | undefined;
  /** The `data:` lines. "" for a comment. */
  data: string;
  /** The parsed data. Undefined where it is no JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: events of every shape.
  json: any;
  /** A comment's text. */
  comment: string | undefined;
}

/** Takes complete events off a text. `rest` is the incomplete part. */
export function takeEvents(text: string): { events: SseEvent[]; rest: string } {
  const events: SseEvent[] = [];
  let rest = text;
  for (;;) {
    // A comment between two events is a line of its own.
    const [comment] = /^:.*\n/.exec(rest) ?? [];
    const end = comment === undefined ? rest.indexOf("\n\n") : comment.length;
    if (end < 0) return { events, rest };
    events.push(eventOf(comment?.slice(0, -1) ?? rest.slice(0, end)));
    rest = rest.slice(comment === undefined ? end + 2 : end);
  }
}

function eventOf(block: string): SseEvent {
  const lines = block.split("\n");
  const field = (name: string) =>
    lines.filter((line) => line.startsWith(`${name}:`)).map((line) => line.slice(name.length + 2));
  const data = field("data").join("\n");
  return {
    name: field("event")[0],
    data,
    json: parsed(data),
    comment: lines.every((line) => line.startsWith(":")) ? block.slice(1).trim() : undefined,
  };
}

function parsed(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    return undefined;
  }
}
