// Answers the pages without a key that lead on from the bare address: the front page, llms.txt, security.txt, the icon. `docs.ts`
// has the documentation itself.

import { readFile } from "node:fs/promises";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { madeOnce } from "#kit/base/memo.ts";
import type { Edge, SecurityContact } from "../context.ts";

/** Registers the pages and files that lead on from the bare address of this gateway. They take no key, and have their usual paths. */
export function discoveryRoutes(app: FastifyInstance, edge: Edge): void {
  const linksOf = (request: FastifyRequest) => placesOf(edge, request);
  app.get("/", async (request, reply) => {
    linkToDescription(edge, request, reply);
    // A cache must not give the page to a program, nor JSON to a browser.
    reply.header("vary", [reply.getHeader("vary") ?? [], "Accept"].flat().join(", "));
    if (!wantsPage(request.headers.accept)) {
      return reply.send({ object: "service", name: "genmesh", links: linksOf(request) });
    }
    return reply
      .headers({
        "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; img-src 'self'",
        "x-content-type-options": "nosniff",
      })
      .type("text/html; charset=utf-8")
      .send(frontPage(linksOf(request)));
  });
  app.get("/llms.txt", async (request, reply) =>
    reply.type("text/plain; charset=utf-8").send(guideForModels(linksOf(request))),
  );
  iconRoutes(app);
  const { security } = edge.settings;
  if (!security) return;
  app.get("/.well-known/security.txt", async (request, reply) =>
    reply
      .type("text/plain; charset=utf-8")
      .send(securityFile(security, `${rootOf(edge, request)}/.well-known/security.txt`)),
  );
}

/** Names the API's description in `Link` (RFC 8631), for clients that read an answer before the documentation. */
export function linkToDescription(edge: Edge, request: FastifyRequest, reply: FastifyReply): void {
  const root = rootOf(edge, request);
  reply.header(
    "link",
    `<${root}/openapi.json>; rel="service-desc"; type="application/json", <${root}/docs/>; rel="service-doc"; type="text/html"`,
  );
}

/** Addresses by what is found there. */
type Links = Record<"api" | "models" | "docs" | "openapi" | "llms" | "ready", string> & {
  /** Absent: the console is off. */
  console?: string;
};

function placesOf(edge: Edge, request: FastifyRequest): Links {
  const root = rootOf(edge, request);
  return {
    api: `${root}/v1`,
    models: `${root}/v1/models`,
    docs: `${root}/docs/`,
    openapi: `${root}/openapi.json`,
    llms: `${root}/llms.txt`,
    ready: `${root}/readyz`,
    ...(edge.settings.console ? { console: `${root}/console/` } : {}),
  };
}

function rootOf(edge: Edge, request: FastifyRequest): string {
  return edge.urls.api(request).replace(/\/v1$/, "");
}

/** Browsers name HTML itself. Programs mostly send a wildcard, and get JSON. */
function wantsPage(accept = ""): boolean {
  return accept.split(",").some((one) => {
    const [type = "", ...parameters] = one.split(";").map((part) => part.trim().toLowerCase());
    return type === "text/html" && !parameters.some((part) => /^q=0(?:\.0*)?$/.test(part));
  });
}

// Every address in it is made of a host that was checked (`isHost`), or of the operator's setting as a URL writes it.
function frontPage({ api, docs, openapi, llms, console }: Links): string {
  const rows = [
    ...(console ? [[console, "Console", "Keys, usage, and a playground for every model"]] : []),
    [docs, "Documentation", "Every operation of the API, with examples"],
    [openapi, "OpenAPI description", "For programs that make clients"],
    [llms, "llms.txt", "The same links for language models"],
  ];
  const items = rows.map(
    ([url, title, text]) => `<li><a href="${attribute(url)}">${title}</a><br>${text}</li>`,
  );
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>genmesh</title>
<link rel="icon" href="favicon.svg" type="image/svg+xml">
<style>body{font:1rem/1.5 system-ui,sans-serif;max-width:36rem;margin:4rem auto;padding:0 1rem}li{margin:.75rem 0}</style>
</head>
<body>
<main>
<h1>genmesh</h1>
<p>Text, images, videos, music and speech behind one API. Its address is <code>${attribute(api)}</code>, and every call takes a key.</p>
<ul>
${items.join("\n")}
</ul>
</main>
</body>
</html>
`;
}

function attribute(text = ""): string {
  return text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;");
}

/** In the form of https://llmstxt.org. */
function guideForModels({ api, models, docs, openapi, console }: Links): string {
  return `# genmesh

> Text, images, videos, music and speech behind one API in the form of OpenAI's. Every call takes a key: \`Authorization: Bearer KEY\`.

- The base URL for clients is ${api}.
- Text answers at once or as a stream: \`POST /responses\`, \`POST /chat/completions\`.
- Images, videos and music are jobs. \`POST\` answers 202 with a \`statusUrl\` to poll, or waits with \`Prefer: wait\`.
- A \`POST\` with an \`Idempotency-Key\` may be repeated, and is charged once.

## API

- [OpenAPI description](${openapi}): every operation, with its request, answer and errors
- [Models](${models}): ids, limits, options and prices of the models that a key may use

## Optional

- [Documentation](${docs}): the description as a page
${console ? `- [Console](${console}): keys, usage and a playground, for people\n` : ""}`;
}

/** In the form of RFC 9116. */
function securityFile({ contacts, expires }: SecurityContact, canonical: string): string {
  const lines = [
    ...contacts.map((contact) => `Contact: ${contact}`),
    `Expires: ${expires}`,
    `Canonical: ${canonical}`,
  ];
  return `${lines.join("\r\n")}\r\n`;
}

/** Seconds for which a browser may keep the icon: a day. */
const iconMaxAgeSeconds = 86_400;

function iconRoutes(app: FastifyInstance): void {
  const files = [
    ["/favicon.svg", "image/svg+xml", new URL("../favicon.svg", import.meta.url)],
    // Browsers ask for this one unasked, on pages that name no icon.
    ["/favicon.ico", "image/x-icon", new URL("../favicon.ico", import.meta.url)],
  ] as const;
  for (const [path, type, file] of files) {
    const bytes = madeOnce(() => readFile(file));
    app.get(path, async (_request, reply) =>
      reply
        .headers({
          "cache-control": `public, max-age=${iconMaxAgeSeconds}`,
          "x-content-type-options": "nosniff",
        })
        .type(type)
        .send(await bytes()),
    );
  }
}
