import type { TextPort, TextRequest } from "../../services/common/agreements/text-port.ts";
import type { StopSignal } from "../../services/kit/base/stop.ts";
import type { CallerSocket } from "../support/caller-socket.ts";
import { until } from "../support/until.ts";

/** An answer that the test ends itself. */
export interface Asked {
  request: TextRequest;
  body: Record<string, unknown>;
  /** Sends events. */
  say(text: string): void;
  /** Ends the answer with a finished response. */
  finish(output?: readonly object[]): void;
  signal: StopSignal;
}

/** The event of a stream. */
export const event = (type: string, fields: object) =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;

/** A text service whose answers the test writes. */
export function scriptText() {
  const asked: Asked[] = [];
  const port: TextPort = {
    json: () => Promise.reject(new Error("no socket asks for JSON")),
    async answer(request, { signal }) {
      const waiting: Uint8Array[] = [];
      let wake = () => {};
      let isOver = false;
      const id = `resp_${asked.length}`;
      signal.addEventListener("abort", () => wake());
      asked.push({
        ...{ request, signal },
        body: JSON.parse(Buffer.from(request.body).toString()),
        say(text) {
          waiting.push(Buffer.from(text));
          wake();
        },
        finish(output = []) {
          const response = { id, status: "completed", output, usage: { costUsdMicros: 7 } };
          isOver = true;
          this.say(`${event("response.completed", { response })}data: [DONE]\n\n`);
        },
      });
      async function* events() {
        for (;;) {
          const next = waiting.shift();
          if (next) yield next;
          else if (isOver) return;
          else if (signal.aborted) throw signal.reason;
          else {
            await new Promise<void>((resolve) => {
              wake = resolve;
            });
          }
        }
      }
      return { kind: "events", replayed: false, ignored: ["seed"], events: events() };
    },
  };

  /** The next request that reaches the text service. */
  async function nextAsked(): Promise<Asked> {
    const at = asked.length;
    return (await until("the text service is asked", () => asked[at])) as Asked;
  }
  async function begun(socket: CallerSocket, fields: object = {}) {
    const next = nextAsked();
    socket.send({ type: "response.create", model: "chat-1", input: "Hi", ...fields });
    return await next;
  }

  return { port, asked, nextAsked, begun };
}
