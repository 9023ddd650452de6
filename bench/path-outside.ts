import { once } from "node:events";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { jsonAnswer, streamAnswer } from "./answers.ts";
import { models } from "./requests.ts";

// The caller and the upstream of `bench/path.ts`, in a process of their own. So the process that is counted has genmesh in it, and little
// else. It sends the upstream's port to its parent. Then it takes one order after the other, and says when each is done.

/** Requests that the caller sends, one after the other. */
export interface Order {
  baseUrl: string;
  key: string;
  /** The deltas of each answer. Undefined: the answer is JSON. */
  deltas?: number;
  times: number;
}

const input = "Tell me of the sea.";
let asked = Promise.withResolvers<ServerResponse>();

const server = createServer((received, response) => {
  received.resume().on("end", () => asked.resolve(response));
});

function piecesOf(deltas: number | undefined): string[] {
  if (deltas === undefined) return [jsonAnswer().toString()];
  const { head, deltas: middle, tail } = streamAnswer(deltas);
  return [head, ...middle, tail].map((piece) => piece.toString());
}

/** Sends one request. The upstream sends a piece after the caller has the piece before it, so that each of them passes alone. */
async function ask({ baseUrl, key, deltas }: Order): Promise<void> {
  asked = Promise.withResolvers();
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const call = request(`${baseUrl}/responses`, { method: "POST", headers });
  const answered = once(call, "response") as Promise<[IncomingMessage]>;
  call.end(JSON.stringify({ model: models.chat, input, stream: deltas !== undefined }));
  // A request that genmesh refuses never comes to the upstream.
  const first = await Promise.race([asked.promise, answered]);
  const send = Array.isArray(first) ? () => {} : sender(first, deltas);
  send(0);
  const [answer] = await answered;
  let [text, events] = ["", 0];
  /** The part of an event that has not ended. */
  let rest = "";
  answer.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
    const parts = `${rest}${chunk}`.split("\n\n");
    rest = parts.pop() ?? "";
    events += parts.length;
    send(events);
  });
  await once(answer, "end");
  if (!text.includes('"completed"')) throw new Error(`it was answered ${text.slice(-1_000)}`);
}

/** Sends the next piece of an answer once the caller has as many events as were sent. */
function sender(reply: ServerResponse, deltas: number | undefined): (events: number) => void {
  const left = piecesOf(deltas);
  const type = deltas === undefined ? "application/json" : "text/event-stream";
  let sentEvents = 0;
  reply.writeHead(200, { "content-type": type });
  return (events) => {
    const piece = events >= sentEvents ? left.shift() : undefined;
    if (piece === undefined) return;
    sentEvents += piece.split("\n\n").length - 1;
    if (left.length > 0) reply.write(piece);
    else reply.end(piece);
  };
}

process.on("message", async (order: Order) => {
  for (let time = 0; time < order.times; time++) await ask(order);
  process.send?.("done");
});
process.on("disconnect", () => server.close().closeAllConnections());
server.listen(0, "127.0.0.1", () => process.send?.((server.address() as AddressInfo).port));
