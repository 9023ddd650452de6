// Serves the OpenAPI document and a page to browse it. The viewer is loaded only when that page is opened.

import { readFile } from "node:fs/promises";
import Fastify, { type FastifyInstance } from "fastify";
import { madeOnce } from "#kit/base/memo.ts";

/** A file of the documentation. */
interface Asset {
  contentType: string;
  body: Buffer;
}

/** Nothing is loaded from elsewhere. So the page works without a network, and no other server learns that it was opened. */
const policy = [
  "default-src 'self'",
  "script-src 'self' 'unsafe-inline' 'unsafe-eval'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data: blob:",
  "font-src 'self' data:",
  "worker-src 'self' blob:",
  // The page runs the scripts of its viewer, inline ones too. In a sandbox it has no origin, so its requests carry no cookie.
  "sandbox allow-scripts",
].join("; ");

/**
 * A page in a sandbox may not use the browser's storage, which the viewer does when it loads. It gets a storage that lasts as long as
 * the page.
 */
const storage = `<script>
for (const name of ["localStorage", "sessionStorage"]) {
  const kept = new Map();
  Object.defineProperty(window, name, { value: {
    get length() { return kept.size; },
    key: (index) => [...kept.keys()][index] ?? null,
    getItem: (key) => kept.get(String(key)) ?? null,
    setItem: (key, value) => void kept.set(String(key), String(value)),
    removeItem: (key) => void kept.delete(String(key)),
    clear: () => kept.clear(),
  } });
}
</script>`;

const pagePaths = ["/docs/", "/docs/js/scalar.js"];

/** `/openapi.json` as committed, and `/docs`, a page to browse it. */
export function docsRoutes(app: FastifyInstance): void {
  const description = madeOnce(() => readFile(new URL("../openapi.json", import.meta.url)));
  // The viewer is 4 MB of script. A process whose documentation is not read never loads it.
  const page = madeOnce(loadPage);

  app.get("/openapi.json", async (_request, reply) => {
    // It is public, and the page of the documentation has no origin.
    reply.header("access-control-allow-origin", "*");
    return reply.type("application/json; charset=utf-8").send(await description());
  });
  app.get("/docs", async (_request, reply) => reply.code(301).header("location", "docs/").send());
  for (const [index, path] of pagePaths.entries()) {
    app.get(path, async (_request, reply) => {
      const { [index]: asset } = await page();
      return reply
        .headers({
          "content-type": asset?.contentType,
          "content-security-policy": policy,
          "x-content-type-options": "nosniff",
        })
        .send(asset?.body);
    });
  }
}

/** The files at {@link pagePaths}, as the viewer makes them. */
async function loadPage(): Promise<Asset[]> {
  const { default: scalar } = await import("@scalar/fastify-api-reference");
  const viewer = Fastify({ exposeHeadRoutes: false });
  try {
    await viewer.register(scalar, {
      routePrefix: "/docs",
      configuration: {
        url: "../openapi.json",
        pageTitle: "genmesh API",
        withDefaultFonts: false,
        hideClientButton: true,
        // A page without an origin may not call the API. The console has a playground for that.
        hideTestRequestButton: true,
        telemetry: false,
        showDeveloperTools: "never",
        agent: { disabled: true },
        mcp: { disabled: true },
      },
    });
    return await Promise.all(pagePaths.map((path) => fetchAsset(viewer, path)));
  } finally {
    await viewer.close();
  }
}

async function fetchAsset(viewer: FastifyInstance, path: string): Promise<Asset> {
  const { headers, rawPayload } = await viewer.inject({ url: path });
  const contentType = String(headers["content-type"]);
  if (!contentType.startsWith("text/html")) return { contentType, body: rawPayload };
  const page = rawPayload.toString().replace("<head>", `<head>${storage}`);
  return { contentType, body: Buffer.from(page) };
}
