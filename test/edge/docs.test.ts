import { afterAll, beforeAll, expect, test } from "vitest";
import { type EdgeWorld, startEdge } from "./world.ts";

let edge: EdgeWorld;
beforeAll(async () => {
  edge = await startEdge();
});
afterAll(() => edge[Symbol.asyncDispose]());

const get = (path: string) => fetch(`http://127.0.0.1:${edge.port}${path}`);

test("/openapi.json is served without a key", async () => {
  const response = await get("/openapi.json");
  expect(response.headers.get("content-type")).toMatch(/^application\/json/);
  expect(await response.json()).toMatchObject({ openapi: "3.1.0", info: { title: "genmesh" } });
});

test("/docs is a page that loads nothing from elsewhere", async () => {
  const response = await get("/docs");
  expect(new URL(response.url).pathname).toBe("/docs/");
  expect(response.headers.get("content-type")).toMatch(/^text\/html/);
  // The browser itself may load from no other origin.
  expect(response.headers.get("content-security-policy")).toMatch(/^default-src 'self'; /);
  expect(response.headers.get("content-security-policy")).not.toMatch(/https?:/);
  const page = await response.text();
  expect(page).not.toMatch(/https?:\/\//);
  expect(page).toContain('"../openapi.json"');
  expect(page).toMatch(/withDefaultFonts"?: false/);
  const scripts = [...page.matchAll(/<script[^>]* src="([^"]+)"/g)].map(([, src]) => src ?? "");
  expect(scripts).toEqual(["js/scalar.js"]);
  const script = await get(new URL(scripts[0] ?? "", response.url).pathname);
  expect(script.headers.get("content-type")).toMatch(/javascript/);
  expect((await script.text()).length).toBeGreaterThan(1_000_000);
});
