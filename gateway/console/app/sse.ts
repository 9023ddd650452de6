// Reads server-sent events in the browser.

export interface ServerEvent {
  /** "message" where the stream names no event. */
  event: string;
  data: string;
  id: string;
}

/** The events of a stream, one after the other, until the stream ends. A break of the connection throws. */
export async function* eventsOf(response: Response): AsyncGenerator<ServerEvent> {
  if (!response.body) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let id = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      rest += value;
      // A lone \r at the end may be the first half of \r\n, so it waits for the next bytes.
      const blocks = rest.split(/\r\n\r\n|\n\n|\r\r(?!\n)/);
      rest = blocks.pop() ?? "";
      for (const block of blocks) {
        const event = parse(block, id);
        id = event.id;
        if (event.data !== "") yield event;
      }
    }
  } finally {
    // A screen that leaves the loop early stops the stream.
    await reader.cancel().catch(() => undefined);
  }
}

function parse(block: string, lastId: string): ServerEvent {
  const event: ServerEvent = { event: "message", data: "", id: lastId };
  const data: string[] = [];
  for (const line of block.split(/\r\n|\n|\r/)) {
    const colon = line.indexOf(":");
    if (colon === 0) continue;
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") data.push(value);
    else if (field === "event") event.event = value;
    else if (field === "id") event.id = value;
  }
  return { ...event, data: data.join("\n") };
}
