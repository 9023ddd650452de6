/** The kinds of requests in a load. */
export type RequestKind = "json" | "stream" | "prompt" | "paced" | "submit" | "range";

/** Bytes of a long prompt, and of one range of a download. */
const [promptBytes, rangeBytes] = [64 * 1_024, 4 * 1_024 * 1_024];

/**
 * Names in the catalog: a model that answers at once, one that takes images too, one with deltas at a pace, one with waiting jobs, and
 * one that renders.
 */
export const models = {
  chat: "bench",
  seeing: "bench-seeing",
  paced: "bench-paced",
  image: "bench-image",
  drawn: "bench-drawn",
} as const;

const sentence = "Describe a river in one hundred words, and mind the commas. ";
const long = sentence.repeat(Math.ceil(promptBytes / sentence.length)).slice(0, promptBytes);

const bodies: Record<Exclude<RequestKind, "range">, object> = {
  json: { model: models.chat, input: sentence },
  stream: { model: models.chat, input: sentence, stream: true },
  prompt: { model: models.chat, input: long },
  paced: { model: models.paced, input: sentence, stream: true },
  submit: { model: models.image, prompt: sentence },
};

/** A POST with the body of its kind, in the bytes of the wire. */
export function postRequest(
  kind: keyof typeof bodies,
  path: string,
  headers: Record<string, string> = {},
): Buffer {
  const body = Buffer.from(JSON.stringify(bodies[kind]));
  const all = { ...headers, "content-type": "application/json", "content-length": body.length };
  return Buffer.concat([head(`POST ${path}`, { host: "127.0.0.1", ...all }), body]);
}

/** The requests for text that every gateway takes at the same path, where the model's name alone leads to its server. */
export function textRequests(headers: Record<string, string>) {
  const path = "/v1/responses";
  const post = (kind: keyof typeof bodies) => [postRequest(kind, path, headers)];
  return {
    json: post("json"),
    stream: post("stream"),
    prompt: post("prompt"),
    paced: post("paced"),
  };
}

/** A GET. */
export function getRequest(path: string, headers: Record<string, string> = {}): Buffer {
  return head(`GET ${path}`, { host: "127.0.0.1", ...headers });
}

/** A GET of the first 4 MiB of a larger file. */
export function rangeRequest(path: string, headers: Record<string, string> = {}): Buffer {
  const range = `bytes=0-${rangeBytes - 1}`;
  return head(`GET ${path}`, { host: "127.0.0.1", ...headers, range });
}

function head(line: string, headers: Record<string, string | number>): Buffer {
  const fields = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return Buffer.from(`${[`${line} HTTP/1.1`, ...fields].join("\r\n")}\r\n\r\n`);
}
