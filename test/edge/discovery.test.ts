import { afterAll, beforeAll, expect, test } from "vitest";
import { type EdgeWorld, startEdge } from "./world.ts";

let edge: EdgeWorld;
const security = {
  contacts: ["mailto:security@example.com", "https://example.com/report"],
  expires: "2027-06-30T00:00:00Z",
};
beforeAll(async () => {
  edge = await startEdge({
    settings: { publicUrl: "https://api.example.com/ai", console: {}, security },
  });
});
afterAll(() => edge[Symbol.asyncDispose]());

const get = (path: string, headers: Record<string, string> = {}) =>
  fetch(`http://127.0.0.1:${edge.port}${path}`, { headers });

const root = "https://api.example.com/ai";
const links = {
  api: `${root}/v1`,
  models: `${root}/v1/models`,
  docs: `${root}/docs/`,
  openapi: `${root}/openapi.json`,
  llms: `${root}/llms.txt`,
  ready: `${root}/readyz`,
  console: `${root}/console/`,
};

test.each([undefined, "*/*", "application/json", "text/html;q=0, */*"])(
  "/ answers a program that accepts %s with links",
  async (accept) => {
    const response = await get("/", accept === undefined ? {} : { accept });
    expect(response.headers.get("content-type")).toMatch(/^application\/json/);
    expect(response.headers.get("vary")).toBe("Accept");
    expect(await response.json()).toEqual({ object: "service", name: "genmesh", links });
  },
);

test("/ answers a browser with a page that leads on and runs nothing", async () => {
  const response = await get("/", {
    accept: "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
  });
  expect(response.headers.get("content-type")).toBe("text/html; charset=utf-8");
  expect(response.headers.get("content-security-policy")).toMatch(/^default-src 'none'; /);
  const page = await response.text();
  const shown = [...page.matchAll(/<a href="([^"]+)"/g)].map(([, url]) => url);
  expect(shown).toEqual([links.console, links.docs, links.openapi, links.llms]);
});

test("/ keeps apart what varies, for pages of other origins too", async () => {
  const open = await edge.another({ corsOrigins: ["*"] });
  expect((await open.inject("/")).headers.vary).toBe("Origin, Accept");
});

test("every link of / answers here", async () => {
  // The base of the API is no page, and the console first builds its files.
  for (const [name, url] of Object.entries(links)) {
    if (name === "api" || name === "console") continue;
    const response = await edge.ask(url.slice(root.length));
    expect([url, response.status]).toEqual([url, 200]);
  }
});

test("without the console, / has no link to it", async () => {
  await using plain = await startEdge();
  const own = `http://127.0.0.1:${plain.port}`;
  const { links: shown } = (await (await fetch(own)).json()) as { links: Record<string, string> };
  expect(Object.keys(shown)).toEqual(Object.keys(links).filter((name) => name !== "console"));
  expect(shown.api).toBe(`${own}/v1`);
  const page = await fetch(own, { headers: { accept: "text/html" } });
  expect(await page.text()).not.toContain("console");
});

test.each(["/", "/v1/models"])("%s names the description of the API in Link", async (path) => {
  const response = await edge.ask(path);
  expect(response.headers.get("link")).toBe(
    `<${links.openapi}>; rel="service-desc"; type="application/json", <${links.docs}>; rel="service-doc"; type="text/html"`,
  );
});

test("/llms.txt has a title, a summary, and lists of links", async () => {
  const response = await get("/llms.txt");
  expect(response.headers.get("content-type")).toBe("text/plain; charset=utf-8");
  const text = await response.text();
  expect(text).toMatch(/^# genmesh\n\n> [^\n]+\n\n/);
  const [, ...sections] = text.split(/^## /m);
  expect(sections.length).toBeGreaterThan(0);
  for (const section of sections) {
    const lines = section.trim().split("\n").slice(2);
    for (const line of lines) expect(line).toMatch(/^- \[[^\]]+\]\(https:[^)]+\): \S/);
  }
});

test("/.well-known/security.txt has the operator's contacts, and is absent without them", async () => {
  const response = await get("/.well-known/security.txt");
  expect(response.headers.get("content-type")).toBe("text/plain; charset=utf-8");
  expect((await response.text()).split("\r\n")).toEqual([
    "Contact: mailto:security@example.com",
    "Contact: https://example.com/report",
    "Expires: 2027-06-30T00:00:00Z",
    `Canonical: ${root}/.well-known/security.txt`,
    "",
  ]);
  await using plain = await startEdge();
  expect((await plain.ask("/.well-known/security.txt")).status).toBe(404);
});

test.each([
  ["/favicon.svg", "image/svg+xml", "<svg "],
  ["/favicon.ico", "image/x-icon", "\0\0\u0001\0"],
])("%s is an icon", async (path, type, begin) => {
  const response = await get(path);
  expect(response.headers.get("content-type")).toBe(type);
  expect(Buffer.from(await response.arrayBuffer()).toString("latin1")).toMatch(
    new RegExp(`^${begin}`),
  );
});

test.each(["/v1/models", "/v1/models/image-1"])(
  "%s is 304 to a caller that has it",
  async (path) => {
    const first = await edge.ask(path);
    const etag = first.headers.get("etag") ?? "";
    expect(etag).toMatch(/^"[\w-]+"$/);
    expect(first.headers.get("cache-control")).toBe("private, no-cache");
    expect(first.headers.get("content-type")).toBe("application/json; charset=utf-8");
    for (const known of [etag, `W/${etag}`, `"other", ${etag}`, "*"]) {
      const again = await edge.ask(path, { headers: { "if-none-match": known } });
      expect([known, again.status, await again.text()]).toEqual([known, 304, ""]);
      expect(again.headers.get("etag")).toBe(etag);
    }
    const other = await edge.ask(path, { headers: { "if-none-match": '"other"' } });
    expect(other.status).toBe(200);
    expect(await other.json()).toEqual(await first.json());
  },
);

test("a key that sees other models has another tag", async () => {
  const key = await edge.makeKey({ allowedModels: ["image-1"] });
  const own = await edge.ask("/v1/models", { headers: { authorization: `Bearer ${key}` } });
  const all = await edge.ask("/v1/models");
  expect(own.headers.get("etag")).not.toBe(all.headers.get("etag"));
});
