// Refuses paths and methods that do not exist, after the key was checked, and says what to use in place of some of OpenAI's.

import type { FastifyInstance, FastifyRequest } from "fastify";
import { ErrorReason, RefusalError } from "#kit/base/errors.ts";
import type { Rule } from "./rules.ts";

/** A path of the API and the methods that it takes. */
interface KnownPath {
  pattern: RegExp;
  methods: Set<string>;
}

/** Tells paths that do not exist from methods that a path does not take. Register it before the routes. */
export interface UnknownRoutes {
  /** Refuses with UNKNOWN_ROUTE, or METHOD_NOT_ALLOWED with the methods for `Allow`. */
  refuse(request: FastifyRequest): never;
  /** Does so where the path or the method is unknown, after admission and before any work on the body. */
  rule: Rule;
}

/**
 * Paths of OpenAI's API that do not exist here, by their beginning below `/v1`, and the path to use instead. The table of
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
  const refusalOf = (request: FastifyRequest) => {
    // In the router's form. A broken path was made readable before (`routedUrl`), and an encoded slash stays encoded.
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
  };
  const refuse: UnknownRoutes["refuse"] = (request) => {
    throw refusalOf(request);
  };
  return {
    refuse,
    rule(request) {
      const params = Object.values(request.params as Record<string, string>);
      // To the router, `/models/` is `/models/:model` without a model.
      if (request.is404 || params.includes("")) refuse(request);
    },
  };
}

function patternOf(url: string): RegExp {
  const parts = url
    .split("/")
    .map((part) => (part.startsWith(":") ? "[^/]+" : part.replaceAll(".", "\\.")));
  return new RegExp(`^${parts.join("/")}$`);
}
