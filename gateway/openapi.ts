// Makes the OpenAPI document of the public API from the schemas of the routes. `npm run openapi` writes it to openapi.json.

import { readFile, writeFile } from "node:fs/promises";
import swagger from "@fastify/swagger";
import Fastify from "fastify";
import { components } from "./components.ts";
import type { Edge } from "./context.ts";
import { shortErrorTable } from "./errors-page.ts";
import { describedWebhooks } from "./openapi-webhooks.ts";
import { v1Routes } from "./routes/v1/index.ts";
import type { Schema } from "./schemas.ts";

/** The file of the committed description. */
const openapiFile = new URL("./openapi.json", import.meta.url);

const introduction = `Text, images, video, music and speech behind one OpenAI-shaped API.

* Every path takes \`Authorization: Bearer <API key>\`; a missing or invalid key is 401 \`invalid_api_key\`.
* Every answer carries an \`x-request-id\` of ours. One that you sent, as \`x-request-id\` or \`x-client-request-id\`, comes back as
  \`x-client-request-id\`.
* Images, videos and music are jobs: 202, then poll \`statusUrl\`, or listen to \`/jobs/{jobId}/events\`.
* \`HEAD\` is answered wherever \`GET\` is, with the same headers.
* Pages of other origins may call where the operator allows theirs (\`GENMESH_CORS_ORIGINS\`).
* Files are private: they are fetched with the key that made them.
* Every POST takes an \`Idempotency-Key\`: a repeat gives the first answer, is charged once, and carries
  \`Idempotency-Replayed: true\`; another body under the same key is 422.
* Text requests take OpenAI's properties and the usual ones of sampling (\`top_k\`, \`min_p\`, …). Others are accepted, have no
  effect, and are named in \`x-genmesh-ignored-parameters\`; a model may take more.

## Images, videos, music

Submit a job, then poll its \`statusUrl\` every 3 to 5 seconds, or listen:

    curl $API/images/generations -H "Authorization: Bearer $KEY" -H "Idempotency-Key: fox-1" \\
      -H "Content-Type: application/json" -d '{"model": "image-1", "prompt": "a fox in the snow"}'
    curl -N $API/jobs/job_…/events -H "Authorization: Bearer $KEY"

The last event, \`job.completed\` or \`job.failed\`, carries the whole job: \`creditsCharged\`, and the outputs under \`images\`,
\`videos\` or \`clips\`. A failed job costs nothing. Each output has a \`url\`, which takes \`Range\`, \`If-Range\`, \`If-None-Match\`,
\`HEAD\` and \`?download=1\`:

    curl -H "Authorization: Bearer $KEY" -H "Range: bytes=0-1023" -o begin.bin "$API/images/generations/job_…/files/file_…"

References are \`input_reference\`, then \`referenceFileIds\`: images of yours (JPEG, PNG, WebP; 20 MiB, 50 megapixels), as
\`{"file_id": "file_…"}\` after \`POST /files\`, or as \`{"image_url": "…"}\`, a public URL or a data URI. An image that this key
has made is one too, by its id or by its \`url\`. A video begins with its reference.

A submission may name a \`webhookUrl\`, which is sent \`{"type", "timestamp", "data"}\` when the job has ended: \`type\` is
\`job.completed\`, \`job.failed\` or \`job.cancelled\`, \`data\` the job. It is signed by
[Standard Webhooks](https://www.standardwebhooks.com) with the secret of \`GET /webhooks/secret\`, and sent again for 24 hours until it
is answered with 2xx; 410 stops it. It may come twice: \`webhook-id\` is the same then.

## Errors

The body is \`{"error": {message, type, param, code}}\`. 429 and 503 carry \`Retry-After\`; 402 and 422 carry
\`x-should-retry: false\`. 402, and 403 \`key_limit_exceeded\`, name \`requiredUsdMicros\`, \`spendableUsdMicros\` and, for text, the
largest \`max_output_tokens\` that would be taken as \`maxOutputTokens\`; for jobs \`requiredCredits\` and \`spendableCredits\`. An
account has at most 1,000 requests and 1,000 jobs under way: 429 \`too_many_open_requests\`.

${shortErrorTable()}`;

/** The groups of operations, in the order of the documentation. */
const tags = {
  Catalog: "Models with their abilities and prices.",
  Billing: "Prepaid balances, charges, holds and alerts.",
  Usage: "What was used and charged, by request, hour and day.",
  Keys: "API keys: who may do what, and for how much.",
  Text: "Responses, chat, embeddings and transcriptions.",
  Images: "Jobs that make or edit images.",
  Videos: "Jobs that make videos.",
  Music: "Jobs that make music.",
  Jobs: "Jobs of every kind: their state, events, list and end.",
  Webhooks: "Signed messages about jobs and funds.",
  Speech: "Spoken text.",
  Files: "Uploads for references.",
};

/** The OpenAPI 3.1 description of the public API, made from the route schemas. */
export async function describeApi(): Promise<string> {
  const app = Fastify({ exposeHeadRoutes: false });
  app.setValidatorCompiler(() => () => true);
  app.setSerializerCompiler(() => (value) => JSON.stringify(value));
  for (const component of components) app.addSchema(component);
  await app.register(swagger, {
    openapi: {
      openapi: "3.1.0",
      info: {
        ...{ title: "genmesh", version: "1.0.0", description: introduction },
        license: { name: "Apache-2.0", identifier: "Apache-2.0" },
      },
      servers: [{ url: "/v1", description: "This deployment." }],
      components: {
        securitySchemes: { apiKey: { type: "http", scheme: "bearer", description: "An API key." } },
      },
      security: [{ apiKey: [] }],
      tags: Object.entries(tags).map(([name, description]) => ({ name, description })),
    },
    refResolver: {
      buildLocalReference: (json, _base, _fragment, index) => String(json.$id ?? `Schema${index}`),
    },
  });
  // Routes use their edge only when they answer a request, and none comes here.
  await app.register(async (v1) => v1Routes(v1, {} as Edge));
  await app.ready();
  const description = withWordedDefaults({ ...app.swagger(), webhooks: describedWebhooks });
  // A HEAD operation would repeat its GET, operation id included.
  for (const path of Object.values(description.paths ?? {})) delete path?.head;
  await app.close();
  return `${JSON.stringify(description, null, 2)}\n`;
}

/**
 * The description with the defaults of bodies in words. Generators of clients make a property that has a `default` one that must be
 * sent.
 */
function withWordedDefaults<T>(description: T): T {
  if (Array.isArray(description)) return description.map(withWordedDefaults) as T;
  if (typeof description !== "object" || description === null) return description;
  const entries = Object.entries(description);
  return Object.fromEntries(
    entries.map(([name, value]) =>
      name === "properties" ? [name, wordedProperties(value)] : [name, withWordedDefaults(value)],
    ),
  ) as T;
}

function wordedProperties(properties: Record<string, Schema>): Record<string, Schema> {
  const worded = Object.entries(properties).map(([name, schema]) => {
    const { default: value, description = "", ...rest } = withWordedDefaults(schema);
    if (value === undefined) return [name, withWordedDefaults(schema)];
    return [name, { ...rest, description: `${description} Default: ${value}.`.trim() }];
  });
  return Object.fromEntries(worded);
}

if (import.meta.main) {
  await writeFile(openapiFile, await describeApi());
}

/** The committed description. */
export function committedDescription(): Promise<string> {
  return readFile(openapiFile, "utf8");
}
