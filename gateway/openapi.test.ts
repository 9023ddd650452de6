import { expect, test } from "vitest";
import { webhookTypes } from "../services/media/webhooks/webhook.ts";
import { committedDescription, describeApi } from "./openapi.ts";

interface Described {
  openapi: string;
  paths: Record<string, Record<string, { operationId: string; responses: object }>>;
  components: { schemas: object };
}

test("the committed description is that of the routes (else: npm run openapi)", async () => {
  expect(await committedDescription()).toBe(await describeApi());
});

test("it holds every operation of the contract, once, and every reference leads somewhere", async () => {
  const text = await committedDescription();
  const { openapi, paths, components } = JSON.parse(text) as Described;
  expect(openapi).toBe("3.1.0");
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { operationId }]) => ({
      call: `${method.toUpperCase()} ${path}`,
      operationId,
    })),
  );
  expect(operations.map(({ call }) => call)).toEqual(
    expect.arrayContaining([
      "GET /models",
      "GET /billing",
      "POST /responses",
      "POST /responses/compact",
      "POST /chat/completions",
      "POST /images/generations",
      "GET /images/generations/{jobId}",
      "POST /videos/generations",
      "GET /videos/generations/{jobId}",
      "GET /videos/generations/{jobId}/files/{fileId}",
      "POST /speech/generations",
      "POST /music/generations",
      "GET /music/generations/{jobId}",
      "POST /files",
      "GET /files",
      "GET /files/{fileId}",
      "GET /files/{fileId}/content",
      "DELETE /files/{fileId}",
    ]),
  );
  const ids = operations.map(({ operationId }) => operationId);
  expect(new Set(ids).size).toBe(ids.length);
  const names = [...text.matchAll(/"\$ref": "#\/components\/schemas\/([^"]+)"/g)].map(([, n]) => n);
  expect(names.length).toBeGreaterThan(20);
  for (const name of names) expect(components.schemas).toHaveProperty(name ?? "");
  expect(text).not.toMatch(/developerPrompt|apiKeyEnv/);
});

test("it knows every type of webhook, also those that have no job", async () => {
  const { components, webhooks } = JSON.parse(await committedDescription()) as {
    webhooks: object;
    components: { schemas: { Webhook: { properties: Record<string, unknown> } } };
  };
  expect(Object.keys(webhooks)).toEqual([...webhookTypes]);
  expect(components.schemas.Webhook.properties).toMatchObject({
    type: { enum: [...webhookTypes] },
    jobId: { type: ["string", "null"] },
  });
});
