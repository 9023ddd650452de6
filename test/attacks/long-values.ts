/** Requests with one value that is far longer than usual. Each is made when it is sent, because all of them together fill a memory. */

import type { Behaviour } from "../support/scripted-upstream.ts";

const mib = 1024 * 1024;
const user = (...content: object[]) => ({ role: "user", content });

const responses = (model: string, item: () => object) => ({
  path: "/responses",
  body: () => ({ model, input: [item()] }),
});
const stateOf = (encrypted: () => string) =>
  responses("far", () => ({ type: "reasoning", summary: [], encrypted_content: encrypted() }));
const imageOf = (address: () => string) => () =>
  user({ type: "input_image", image_url: address() });
const fileAt = (address: () => string) =>
  responses("files", () => user({ type: "input_file", file_url: address() }));
const job = (fields: () => object) => ({
  path: "/images/generations",
  body: () => ({ model: "image-1", prompt: "x", ...fields() }),
});

const embeddings = (input: () => unknown) => ({
  path: "/embeddings",
  body: () => ({ model: "vectors", input: input() }),
});
const numbers = (count: number, from = 0) => Array.from({ length: count }, (_, at) => from + at);

const address = () => `https://example.com/${"x".repeat(60 * mib)}`;

export const longValues = {
  "a state of 30 MiB of emoji": stateOf(() => "😀".repeat(7.5 * mib)),
  "a state of 60 MiB, half of it no base64": stateOf(() => "s!".repeat(30 * mib)),
  "an image's address of 60 MiB": responses("far", imageOf(address)),
  "an image's address of 60 MiB, a host": responses(
    "far",
    imageOf(() => `https://${"a.".repeat(30 * mib)}`),
  ),
  "an image's address of 60 MiB, of emoji": responses(
    "far",
    imageOf(() => `https://example.com/${"😀".repeat(15 * mib)}`),
  ),
  "an image's address of 60 MiB, of spaces": responses(
    "far",
    imageOf(() => " ".repeat(60 * mib)),
  ),
  "an image's address of 60 MiB, for chat": {
    path: "/chat/completions",
    body: () => ({
      model: "far",
      messages: [user({ type: "image_url", image_url: { url: address() } })],
    }),
  },
  "an image's address of 60 MiB, to compact": {
    path: "/responses/compact",
    body: () => ({ model: "far", input: [imageOf(address)()] }),
  },
  "a file's address of 7 MiB, of emoji": fileAt(() => `https://a.b/${"😀".repeat(1.75 * mib)}`),
  // Sorting all of them at once takes a time that grows with the square of their number.
  "marks on one letter to embed": embeddings(() => `a${"\u0301\u0323".repeat(500_000)}`),
  "marks on one letter, with a vowel's in between, to embed": embeddings(
    () => `a${"\u0301\u0e33".repeat(400_000)}`,
  ),
  "290,000 tokens to embed": embeddings(() => numbers(290_000)),
  "290,000 tokens of a digit to embed": embeddings(() => new Array(290_000).fill(5)),
  "290,000 tokens of 16 digits to embed": embeddings(() => numbers(290_000, 2 ** 52)),
  "2,048 lists of tokens to embed": embeddings(() =>
    Array.from({ length: 2_048 }, () => new Array(140).fill(5)),
  ),
  "145,000 lists of a token to embed": embeddings(() => Array.from({ length: 145_000 }, () => [1])),
  "2,048 texts of 4 KiB to embed": embeddings(() =>
    Array.from({ length: 2_048 }, () => "wörd ".repeat(800)),
  ),
  "a text of 8 MiB to embed": embeddings(() => "wörd ".repeat(1.6 * mib)),
  "a webhook's address of 31 MiB": job(() => ({
    webhookUrl: `https://a.b/${"x".repeat(31 * mib)}`,
  })),
  "a reference's address of 30 MiB, of emoji": job(() => ({
    input_reference: { image_url: `https://a.b/${"😀".repeat(7.5 * mib)}` },
  })),
};

/** Vectors for all inputs. */
export function embedded(input: unknown): Behaviour {
  const inputs = Array.isArray(input) && typeof input[0] !== "number" ? input.length : 1;
  const data = Array.from({ length: inputs }, (_, index) => ({
    object: "embedding",
    index,
    embedding: [0.5],
  }));
  const usage = { prompt_tokens: inputs, total_tokens: inputs };
  return {
    kind: "custom",
    handle(_seen, answer) {
      answer.writeHead(200, { "content-type": "application/json" });
      answer.end(JSON.stringify({ object: "list", data, usage }));
    },
  };
}
