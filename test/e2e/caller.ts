import { until } from "../support/until.ts";
import { type SseEvent, takeEvents } from "./sse.ts";

/** A whole answer. */
export interface Asked {
  status: number;
  headers: Headers;
  text: string;
  /** The parsed body. Undefined where it is no JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape.
  json: any;
}

/** An answer of events, read as they arrive. */
export interface OpenStream {
  status: number;
  headers: Headers;
  /** The next event or comment. Undefined at the end. Rejects where the connection broke. */
  next(): Promise<SseEvent | undefined>;
  /** Reads until the first event for which `holds` is true. Rejects at the end. */
  until(holds: (event: SseEvent) => boolean): Promise<SseEvent>;
  /** All events that are left. */
  rest(): Promise<SseEvent[]>;
  /** Closes the connection. */
  leave(): void;
}

/** The USD wallet in the form of `GET /billing`. */
export interface Balance {
  available: number;
  reserved: number;
  spendable: number;
  monthSpend: number;
}

/** A client with an API key, over HTTP. */
export interface Caller {
  baseUrl: string;
  key: string;
  accountId: string;
  keyId: string;
  get(path: string, headers?: Record<string, string>): Promise<Asked>;
  /** Posts JSON. Strings and bytes are sent unchanged. */
  post(path: string, body: unknown, options?: PostOptions): Promise<Asked>;
  /** Posts an object with `stream: true` added, and reads events. */
  open(path: string, body: object, options?: PostOptions): Promise<OpenStream>;
  /** The same, and reads to the end. */
  stream(path: string, body: object, options?: PostOptions): Promise<SseEvent[]>;
  balance(): Promise<Balance>;
  /** The balance once no hold is left. An answer can end before its tokens are counted, and a new process counts slowly at first. */
  settled(): Promise<Balance>;
}

export interface PostOptions {
  headers?: Record<string, string>;
  signal?: AbortSignal;
  idempotencyKey?: string;
}

/** An error in one line: status, type, code and param. */
export function refusalOf({ status, json }: Pick<Asked, "status" | "json">): string {
  const { type, code, param } = json?.error ?? {};
  return `${status} ${type} ${code} ${param}`;
}

/** Makes a caller. `inspect` gets the text of every answer. */
export function createCaller(
  who: Pick<Caller, "baseUrl" | "key" | "accountId" | "keyId">,
  inspect: (text: string) => void,
): Caller {
  const send = (path: string, init: RequestInit & { headers?: Record<string, string> }) =>
    fetch(`${who.baseUrl}${path}`, {
      ...init,
      headers: { authorization: `Bearer ${who.key}`, ...init.headers },
    });
  const post = (path: string, body: unknown, options: PostOptions = {}) =>
    send(path, {
      method: "POST",
      body: isRaw(body) ? body : JSON.stringify(body),
      headers: {
        "content-type": "application/json",
        ...(options.idempotencyKey === undefined
          ? {}
          : { "idempotency-key": options.idempotencyKey }),
        ...options.headers,
      },
      ...(options.signal ? { signal: options.signal } : {}),
    });
  const whole = async (response: Response): Promise<Asked> => {
    const text = await response.text();
    inspect(text);
    return { status: response.status, headers: response.headers, text, json: parsed(text) };
  };
  const caller: Caller = {
    ...who,
    get: async (path, headers = {}) => whole(await send(path, { headers })),
    post: async (path, body, options) => whole(await post(path, body, options)),
    async open(path, body, options = {}) {
      const leaving = new AbortController();
      const signal = options.signal
        ? AbortSignal.any([options.signal, leaving.signal])
        : leaving.signal;
      const response = await post(path, { ...body, stream: true }, { ...options, signal });
      return openStream(response, leaving, inspect);
    },
    async stream(path, body, options) {
      return (await caller.open(path, body, options)).rest();
    },
    async balance() {
      const { json } = await caller.get("/billing");
      return {
        available: json.availableUsdMicros,
        reserved: json.reservedUsdMicros,
        spendable: json.spendableUsdMicros,
        monthSpend: json.monthSpendUsdMicros,
      };
    },
    async settled() {
      return until("the settlement", async () => {
        const balance = await caller.balance();
        return balance.reserved === 0 ? balance : undefined;
      });
    },
  };
  return caller;
}

async function openStream(
  response: Response,
  leaving: AbortController,
  inspect: (text: string) => void,
): Promise<OpenStream> {
  const type = response.headers.get("content-type") ?? "";
  if (!type.startsWith("text/event-stream") || !response.body) {
    throw new Error(`no stream: ${response.status} ${await response.text()}`);
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  const ready: SseEvent[] = [];
  let rest = "";
  const next = async (): Promise<SseEvent | undefined> => {
    while (ready.length === 0) {
      const { done, value } = await reader.read();
      if (done) {
        if (rest !== "") throw new Error(`the stream ends within an event: ${rest}`);
        return undefined;
      }
      inspect(value);
      const taken = takeEvents(rest + value);
      rest = taken.rest;
      ready.push(...taken.events);
    }
    return ready.shift();
  };
  return {
    status: response.status,
    headers: response.headers,
    next,
    async until(holds) {
      for (;;) {
        const event = await next();
        if (!event) throw new Error("the stream ended before");
        if (holds(event)) return event;
      }
    },
    async rest() {
      const events: SseEvent[] = [];
      for (let event = await next(); event; event = await next()) events.push(event);
      return events;
    },
    leave: () => leaving.abort(),
  };
}

function isRaw(body: unknown): body is string | Uint8Array<ArrayBuffer> {
  return typeof body === "string" || body instanceof Uint8Array;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
