import { once } from "node:events";
import { type ClientOptions, WebSocket } from "ws";

/** A frame of a server. */
export interface Frame {
  type: string;
  status?: number;
  error?: { code: string; type: string; param: string | null };
  response?: { id: string; status: string; output: Record<string, unknown>[]; usage: unknown };
  headers?: Record<string, string>;
  stream_id?: string;
  sequence_number?: number;
  [name: string]: unknown;
}

/** A caller's socket. */
export interface CallerSocket extends Disposable {
  ws: WebSocket;
  /** All frames so far. */
  frames: Frame[];
  send(message: unknown): void;
  /** Sends a `response.create`, and resolves with the frames up to its last one. */
  create(fields: Record<string, unknown>): Promise<Frame[]>;
  /** The next frames, up to an error or the end of a response. */
  turn(): Promise<Frame[]>;
  /** Resolves with the code of the closing frame. */
  closed: Promise<number>;
}

const ends: ReadonlySet<string> = new Set([
  "error",
  "response.completed",
  "response.incomplete",
  "response.failed",
]);

/** Opens a socket at a base URL, which ends in `/v1`. Rejects where the handshake is refused. */
export async function openSocket(
  baseUrl: string,
  key: string,
  options: ClientOptions = {},
): Promise<CallerSocket> {
  const ws = new WebSocket(`${baseUrl.replace(/^http/, "ws")}/responses`, {
    ...options,
    headers: { authorization: `Bearer ${key}`, ...options.headers },
  });
  const frames: Frame[] = [];
  let taken = 0;
  let wake: (() => void) | undefined;
  ws.on("message", (data) => {
    frames.push(JSON.parse(String(data)));
    wake?.();
  });
  const { promise: closed, resolve: close } = Promise.withResolvers<number>();
  ws.on("close", (code) => {
    close(code);
    wake?.();
  });
  ws.on("error", () => {});
  await once(ws, "open");
  const send = (message: unknown) =>
    ws.send(typeof message === "string" ? message : JSON.stringify(message));
  const turn = async () => {
    for (;;) {
      const at = frames.findIndex(({ type }, index) => index >= taken && ends.has(type));
      if (at >= 0) {
        const from = taken;
        taken = at + 1;
        return frames.slice(from, taken);
      }
      if (ws.readyState === ws.CLOSED) throw new Error("the socket closed within a turn");
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  };
  return {
    ws,
    frames,
    send,
    turn,
    create(fields) {
      send({ type: "response.create", model: "chat-1", ...fields });
      return turn();
    },
    closed,
    [Symbol.dispose]: () => ws.terminate(),
  };
}

/** The answer to a handshake that is refused. */
export async function refusedSocket(
  baseUrl: string,
  headers: Record<string, string>,
): Promise<{ status: number; body: { error: { code: string } }; headers: NodeJS.Dict<unknown> }> {
  const ws = new WebSocket(`${baseUrl.replace(/^http/, "ws")}/responses`, { headers });
  ws.on("error", () => {});
  const [, response] = await once(ws, "unexpected-response");
  let text = "";
  for await (const chunk of response) text += chunk;
  return { status: response.statusCode, headers: response.headers, body: JSON.parse(text) };
}
