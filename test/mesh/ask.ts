import type { MeshCaller } from "./world.ts";

/** An answer, read to its end. */
export interface Answer {
  status: number;
  headers: Headers;
  text: string;
  /** The parsed body. Undefined where it is no JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: documents of every shape.
  json: any;
}

/** A request. */
export interface Question {
  caller: Pick<MeshCaller, "key">;
  /** Below `/v1`. */
  path: string;
  /** Posted as JSON. Without a body the request is a GET. */
  body?: object;
  idempotencyKey?: string | undefined;
  signal?: AbortSignal;
}

/** Sends a request to one gateway. Rejects where the connection breaks. */
export async function ask(gateway: string, question: Question): Promise<Answer> {
  const { caller, path, body, idempotencyKey, signal } = question;
  const response = await fetch(`${gateway}/v1${path}`, {
    method: body ? "POST" : "GET",
    headers: {
      authorization: `Bearer ${caller.key}`,
      ...(body ? { "content-type": "application/json" } : {}),
      ...(idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey }),
    },
    ...(body ? { body: JSON.stringify(body) } : {}),
    ...(signal ? { signal } : {}),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, json: parsed(text) };
}

/** A submission of one image. */
export function imageOf(prompt: string): Pick<Question, "path" | "body"> {
  return { path: "/images/generations", body: { model: "image", prompt } };
}

/** A request for text. */
export function textOf(input: string, more: object = {}): Pick<Question, "path" | "body"> {
  return { path: "/responses", body: { model: "chat", input, max_output_tokens: 50, ...more } };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
