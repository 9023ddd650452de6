import { readFile, writeFile } from "node:fs/promises";
import swagger from "@fastify/swagger";
import Fastify from "fastify";
import type { Edge } from "./context.ts";
import { shortErrorTable } from "./errors-page.ts";
import { v1Routes } from "./routes/v1/index.ts";
import { components } from "./schemas/components.ts";

/** Where the committed description is. */
export const openapiFile = new URL("./openapi.json", import.meta.url);

const introduction = `Text, images, video, music and speech behind one OpenAI-shaped API.

* Every path takes \`Authorization: Bearer <API key>\`; a missing or invalid key is 401 \`invalid_api_key\`.
* Every answer carries \`x-request-id\`: yours where you sent a sane one.
* Images, videos and music are jobs: 202, then poll \`statusUrl\`, or listen to \`/jobs/{jobId}/events\`.
* \`HEAD\` is answered wherever \`GET\` is, with the same headers.
* Pages of other origins may call where the operator allows theirs (\`GENMESH_CORS_ORIGINS\`).
* Files are private: they are fetched with the key that made them.
* Every POST takes an \`Idempotency-Key\`: a repeat gives the first answer, is charged once, and carries
  \`Idempotency-Replayed: true\`; another body under the same key is 422.

## Pictures, films, songs

Submit a job, then poll its \`statusUrl\` every 3 to 5 seconds, or listen:

    curl $API/images/generations -H "Authorization: Bearer $KEY" -H "Idempotency-Key: fox-1" \\
      --json '{"model": "image-1", "prompt": "a fox in the snow"}'
    curl -N $API/jobs/job_…/events -H "Authorization: Bearer $KEY"

The last event, \`job.completed\` or \`job.failed\`, carries the whole job: \`creditsCharged\`, and the outputs under \`images\`,
\`videos\` or \`clips\`. A failed job costs nothing. Each output has a \`url\`, which takes \`Range\`, \`If-Range\`, \`If-None-Match\`,
\`HEAD\` and \`?download=1\`:

    curl -H "Authorization: Bearer $KEY" -H "Range: bytes=0-1023" -o begin.bin "$API/images/generations/job_…/files/file_…"

References are \`input_reference\`, then \`referenceFileIds\`: images of yours (JPEG, PNG, WebP; 20 MiB, 50 megapixels), as
\`{"file_id": "file_…"}\` after \`POST /files\`, or as \`{"image_url": "…"}\`, a public URL or a data URI. A picture that this key
has made is one too, by its id or by its \`url\`. A film begins with its reference.

## Errors

The body is \`{"error": {message, type, param, code}}\`. 429 and 503 carry \`Retry-After\`; 402 and 422 carry
\`x-should-retry: false\`.

${shortErrorTable()}`;

/** The OpenAPI 3.1 description of the public API, made from the route schemas. */
export async function describeApi(): Promise<string> {
  const app = Fastify({ exposeHeadRoutes: false });
  app.setValidatorCompiler(() => () => true);
  app.setSerializerCompiler(() => (value) => JSON.stringify(value));
  for (const component of components) app.addSchema(component);
  await app.register(swagger, {
    openapi: {
      openapi: "3.1.0",
      info: { title: "genmesh", version: "1.0.0", description: introduction },
      servers: [{ url: "/v1", description: "This deployment." }],
      components: {
        securitySchemes: { apiKey: { type: "http", scheme: "bearer", description: "An API key." } },
      },
      security: [{ apiKey: [] }],
      tags: [
        "Catalog",
        "Billing",
        "Text",
        "Images",
        "Videos",
        "Music",
        "Jobs",
        "Speech",
        "Files",
      ].map((name) => ({ name })),
    },
    refResolver: {
      buildLocalReference: (json, _base, _fragment, index) => String(json.$id ?? `Schema${index}`),
    },
  });
  // Routes touch their edge only when they answer, and nobody asks them here.
  await app.register(async (v1) => v1Routes(v1, {} as Edge));
  await app.ready();
  const description = app.swagger();
  // A HEAD operation would repeat its GET, operation id included.
  for (const path of Object.values(description.paths ?? {})) delete path?.head;
  await app.close();
  return `${JSON.stringify(description, null, 2)}\n`;
}

if (import.meta.main) {
  await writeFile(openapiFile, await describeApi());
}

/** The committed description. */
export function committedDescription(): Promise<string> {
  return readFile(openapiFile, "utf8");
}
