import type { FastifyInstance, FastifyRequest } from "fastify";
import { ErrorReason, RefusalError } from "#kit/base/errors.ts";

/** A path of the API and the methods that it takes. */
interface KnownPath {
  pattern: RegExp;
  methods: Set<string>;
}

/** Tells paths that do not exist from methods that a path does not take; register it before the routes. */
export interface UnknownRoutes {
  /** UNKNOWN_ROUTE, or METHOD_NOT_ALLOWED with the methods for `Allow`. */
  refusalOf(request: FastifyRequest): RefusalError;
}

/**
 * Paths of OpenAI's API that are not here, by how they begin below `/v1`, and what to use in their place. The table of
 * docs/openai-sdk.md names them all.
 */
const inPlaceOf: readonly [begin: string, advice: string][] = [
  [
    "/videos",
    "Videos are jobs here. Send POST /videos/generations and poll GET /videos/generations/{id}.",
  ],
  [
    "/responses/",
    "Answers are not stored. Keep what POST /responses answers, and send it in the next input.",
  ],
  [
    "/conversations",
    "Conversations are not stored. Send the whole conversation to POST /responses.",
  ],
  ["/chat/completions/", "Answers are not stored. Keep what POST /chat/completions answers."],
  ["/completions", "Use POST /chat/completions."],
  ["/images/variations", "Use POST /images/edits."],
  ["/audio/translations", "Use POST /audio/transcriptions, and a chat model to translate."],
];

/** Collects the routes that `app` and its children register from now on. */
export function unknownRoutes(app: FastifyInstance): UnknownRoutes {
  const known = new Map<string, KnownPath>();
  app.addHook("onRoute", ({ url, method }) => {
    const path = known.get(url) ?? { pattern: patternOf(url), methods: new Set<string>() };
    for (const one of [method].flat()) path.methods.add(one);
    known.set(url, path);
  });
  return {
    refusalOf(request) {
      // As the router reads it: what is broken has become readable before (`routedUrl`), an encoded slash stays one.
      const path = decodeURI(request.url.split("?", 1)[0] ?? "");
      for (const { pattern, methods } of known.values()) {
        if (!pattern.test(path)) continue;
        return new RefusalError(ErrorReason.METHOD_NOT_ALLOWED, {
          metadata: { allow: [...methods].sort().join(", ") },
        });
      }
      const below = path.replace(/^.*?\/v1(?=\/)/, "");
      const found = inPlaceOf.find(([begin]) => below.startsWith(begin));
      return new RefusalError(
        ErrorReason.UNKNOWN_ROUTE,
        found ? { message: `There is no such path. ${found[1]}` } : {},
      );
    },
  };
}

/** 404 and 405 under `/v1`, after admission and before anything is made of the body. */
export function refuseUnknown(v1: FastifyInstance, unknown: UnknownRoutes): void {
  v1.addHook("onRequest", (request, _reply, done) => {
    const params = Object.values(request.params as Record<string, string>);
    // The router takes `/models/` for `/models/:model` without a model.
    const known = !request.is404 && !params.includes("");
    done(known ? undefined : unknown.refusalOf(request));
  });
  // The hook answers first; this gives the prefix its own not-found route, and with it the hooks.
  v1.setNotFoundHandler((request) => {
    throw unknown.refusalOf(request);
  });
}

function patternOf(url: string): RegExp {
  const parts = url
    .split("/")
    .map((part) => (part.startsWith(":") ? "[^/]+" : part.replaceAll(".", "\\.")));
  return new RegExp(`^${parts.join("/")}$`);
}
