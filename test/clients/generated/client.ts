// A client whose types `openapi-typescript` makes from the description. Compiled and run by typed-clients.test.ts, where these types are.
// Prints each exchange as a line of JSON.

import { readFile } from "node:fs/promises";
import createClient from "openapi-fetch";
import type { components, paths } from "./api";

type Job = components["schemas"]["Job"];

const [baseUrl = "", key = "", pictureFile = "", soundFile = ""] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${key}` } });
client.use({
  async onResponse({ request, response }) {
    const { method, url } = request;
    const { status } = response;
    const contentType = response.headers.get("content-type") ?? "";
    const isText = /json|event-stream/.test(contentType);
    const text = isText ? await response.clone().text() : "";
    const path = url.slice(baseUrl.length);
    process.stdout.write(`${JSON.stringify({ method, path, status, contentType, text })}\n`);
  },
});

/** The form that `openapi-fetch` sends for a body with files. */
const form = (body: object) => {
  const data = new FormData();
  for (const [name, value] of Object.entries(body)) {
    data.append(name, value instanceof Blob ? value : String(value));
  }
  return data;
};
/** A file as a field of a form, which the types call a text. */
const fileOf = async (path: string, name: string) =>
  new File([new Uint8Array(await readFile(path))], name) as unknown as string;

type Whole = "ResponseObject" | "ChatCompletion" | "Message";

/** The whole answer of an operation that can also stream. Throws where it is something else. */
function whole<N extends Whole>(name: string, answer: { data?: unknown; error?: unknown }) {
  const found = dataOf(answer) as components["schemas"][N];
  const kind = "object" in found ? found.object : found.type;
  if (kind !== name) throw new Error(`it is no ${name}`);
  return found;
}

/** The data of an answer. Throws its error. */
function dataOf<T>({ data, error }: { data?: T; error?: unknown }): T {
  if (data === undefined) throw new Error(`refused: ${JSON.stringify(error)}`);
  return data;
}

async function account(): Promise<void> {
  const { data: models } = dataOf(await client.GET("/models"));
  const [first] = models;
  if (!first) throw new Error("there are no models");
  const price: number | undefined = first.pricing?.outputUsdMicrosPerMillionTokens;
  if (price === undefined) throw new Error("the model has no price");
  dataOf(await client.GET("/models/{model}", { params: { path: { model: first.id } } }));
  const { credits } = dataOf(await client.GET("/billing"));
  const available: number | undefined = credits.available;
  if (!available) throw new Error("there are no credits");
  dataOf(await client.GET("/credits"));
  dataOf(await client.GET("/billing/alerts"));
  dataOf(await client.PATCH("/billing/alerts", { body: { lowBalanceUsdMicros: 1 } }));
  dataOf(await client.GET("/billing/entries", { params: { query: { limit: 5 } } }));
  dataOf(await client.GET("/billing/holds"));
  dataOf(await client.GET("/usage", { params: { query: { start_time: 1_700_000_000 } } }));
  dataOf(await client.GET("/requests"));
  dataOf(await client.GET("/key"));
}

async function keys(): Promise<void> {
  const made = dataOf(await client.POST("/keys", { body: { name: "made" } }));
  const path = { keyId: made.data.id ?? "" };
  dataOf(await client.GET("/keys"));
  dataOf(await client.GET("/keys/{keyId}", { params: { path } }));
  dataOf(await client.PATCH("/keys/{keyId}", { params: { path }, body: { name: "named" } }));
  dataOf(await client.POST("/keys/{keyId}/rotate", { params: { path }, body: {} }));
  dataOf(await client.DELETE("/keys/{keyId}", { params: { path } }));
}

async function texts(): Promise<void> {
  const model = "chat-1";
  const response = whole<"ResponseObject">(
    "response",
    await client.POST("/responses", { body: { model, input: "Hello." } }),
  );
  const said = response.output.flatMap((item) =>
    item.type === "message"
      ? item.content.map((part) => (part.type === "output_text" ? part.text : part.refusal))
      : [],
  );
  if (said.join("") === "") throw new Error("nothing was said");
  dataOf(await client.GET("/generation", { params: { query: { id: response.id } } }));
  const streamed = await client.POST("/responses", {
    body: { model, input: "Hello.", stream: true },
    parseAs: "text",
  });
  if (textOfEvents(dataOf(streamed)) === "") throw new Error("nothing was streamed");
  dataOf(await client.POST("/responses/input_tokens", { body: { model, input: "Hello." } }));
  dataOf(await client.POST("/responses/compact", { body: { model, input: "Hello." } }));
  const messages = [{ role: "user" as const, content: "Hello." }];
  const chat = whole<"ChatCompletion">(
    "chat.completion",
    await client.POST("/chat/completions", { body: { model, messages } }),
  );
  const text: string | null | undefined = chat.choices[0]?.message.content;
  if (!text) throw new Error("nothing was said in a chat");
  dataOf(
    await client.POST("/chat/completions", {
      body: { model, messages, stream: true, stream_options: { include_usage: true } },
      parseAs: "text",
    }),
  );
  const message = whole<"Message">(
    "message",
    await client.POST("/messages", { body: { model, messages, max_tokens: 50 } }),
  );
  const [block] = message.content;
  if (block?.type !== "text" || block.text === "") throw new Error("the message is empty");
  dataOf(
    await client.POST("/messages", {
      body: { model, messages, max_tokens: 50, stream: true },
      parseAs: "text",
    }),
  );
  dataOf(await client.POST("/messages/count_tokens", { body: { model, messages } }));
  dataOf(
    await client.POST("/embeddings", { body: { model: "scripted-vectors", input: "Hello." } }),
  );
}

/** The text of a stream, found by the types of its events. */
function textOfEvents(text: unknown): string {
  return String(text)
    .split("\n")
    .filter((line) => line.startsWith("data: {"))
    .map((line) => JSON.parse(line.slice(6)) as components["schemas"]["ResponseEvent"])
    .map((event) => (event.type === "response.output_text.delta" ? event.delta : ""))
    .join("");
}

async function sounds(): Promise<void> {
  const spoken = { model: "speech-1", voice: "alloy", input: "Hello." };
  const { audio } = dataOf(await client.POST("/speech/generations", { body: spoken }));
  const [, speechId = "", fileId = ""] =
    /generations\/([^/]+)\/files\/([^/?]+)/.exec(audio.url) ?? [];
  dataOf(
    await client.GET("/speech/generations/{speechId}/files/{fileId}", {
      params: { path: { speechId, fileId } },
      parseAs: "arrayBuffer",
    }),
  );
  dataOf(await client.POST("/audio/speech", { body: spoken, parseAs: "arrayBuffer" }));
  dataOf(
    await client.POST("/audio/transcriptions", {
      body: { model: "scripted-ears", file: await fileOf(soundFile, "sound.mp3") },
      bodySerializer: form,
    }),
  );
}

async function files(): Promise<void> {
  const file = dataOf(
    await client.POST("/files", {
      body: { purpose: "vision", file: await fileOf(pictureFile, "picture.png") },
      bodySerializer: form,
    }),
  );
  const path = { fileId: file.id };
  dataOf(await client.GET("/files"));
  dataOf(await client.GET("/files/{fileId}", { params: { path } }));
  dataOf(await client.GET("/files/{fileId}/content", { params: { path }, parseAs: "arrayBuffer" }));
  dataOf(await client.DELETE("/files/{fileId}", { params: { path } }));
}

const families = ["images", "videos", "music"] as const;
type Family = (typeof families)[number];
const jobs = {
  images: () =>
    client.POST("/images/generations", { body: { model: "small-image", prompt: "A." } }),
  videos: () =>
    client.POST("/videos/generations", {
      body: { model: "text-only", prompt: "A.", durationSeconds: 6, resolution: "480p" },
    }),
  music: () =>
    client.POST("/music/generations", {
      body: { model: "music-1", mode: "instrumental", title: "A." },
    }),
};

async function submitted(family: Family): Promise<Job> {
  const job = dataOf(await jobs[family]());
  if (!("status" in job)) throw new Error("the answer is no job");
  return job;
}

async function aJob(family: Family): Promise<void> {
  let job = await submitted(family);
  const path = { jobId: job.id };
  dataOf(await client.GET("/jobs/{jobId}/events", { params: { path }, parseAs: "text" }));
  job = dataOf(await client.GET(`/${family}/generations/{jobId}`, { params: { path } }));
  if (job.status !== "completed") throw new Error(`the job is ${job.status}`);
  const [output] = [...(job.images ?? []), ...(job.videos ?? []), ...(job.clips ?? [])];
  dataOf(
    await client.GET(`/${family}/generations/{jobId}/files/{fileId}`, {
      params: { path: { ...path, fileId: output?.id ?? "" } },
      parseAs: "arrayBuffer",
    }),
  );
  const late = await client.POST(`/${family}/generations/{jobId}/cancel`, { params: { path } });
  if (late.error?.error.code !== "job_not_cancellable") throw new Error("it was cancelled late");
  dataOf(await client.DELETE(`/${family}/generations/{jobId}`, { params: { path } }));
}

async function webhooks(): Promise<void> {
  dataOf(await client.GET("/webhooks"));
  dataOf(await client.GET("/webhooks/secret"));
  dataOf(await client.POST("/webhooks/secret/rotate"));
  const webhookId = "wh_0000000000000000000000";
  const none = await client.POST("/webhooks/{webhookId}/retry", {
    params: { path: { webhookId } },
  });
  if (none.error?.error.code !== "webhook_not_found") throw new Error("there is a webhook");
}

async function edits(): Promise<void> {
  dataOf(
    await client.POST("/images/edits", {
      body: {
        model: "scripted-image",
        prompt: "A.",
        image: await fileOf(pictureFile, "picture.png"),
      },
      bodySerializer: form,
    }),
  );
}

await account();
await keys();
await texts();
await sounds();
await files();
for (const family of families) await aJob(family);
dataOf(await client.GET("/jobs"));
await edits();
await webhooks();
