// Joins the parts of the console, below `/console`: the app's files, sign-in, the public API for sessions, the operator's routes.
// `app.ts` mounts it where the console is on.

import type { FastifyInstance, FastifyRequest } from "fastify";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { Edge } from "../context.ts";
import { type Admit, admissionRules } from "../plugins/authentication.ts";
import { inOrder, type Rule } from "../plugins/rules.ts";
import type { UnknownRoutes } from "../plugins/unknown-routes.ts";
import { v1Routes } from "../routes/v1/index.ts";
import { registerAdmin } from "./admin/index.ts";
import { appRoutes } from "./app-files.ts";
import { originRoutes } from "./file-origin.ts";
import { consoleOrigin, neverStored, sameOriginOnly, secureHeaders } from "./guard.ts";
import { oidcRoutes } from "./oidc.ts";
import { requireOperator } from "./session.ts";
import { sessionRoutes } from "./session-routes.ts";
import { createSessions, type Sessions } from "./sessions.ts";
import { setUpRoutes } from "./set-up.ts";

/** The path of the API's second set of routes, for sessions. */
const consoleBase = "/console/api/v1";

/**
 * The console, below `/console`: the app, its sessions, a second set of the public API's routes for them, and the operator's routes. To
 * be called in a scope of that prefix. Where the console is off, no path exists there.
 */
export async function consoleRoutes(
  app: FastifyInstance,
  edge: Edge,
  unknown: UnknownRoutes,
): Promise<void> {
  const { operatorToken, oidc } = edge.settings.console ?? {};
  const sessions = createSessions(edge);
  secureHeaders(app);
  appRoutes(app, edge);
  await app.register(
    async (api) => {
      neverStored(api);
      sameOriginOnly(api);
      api.setNotFoundHandler(unknown.refuse);
      sessionRoutes(api, edge, sessions);
      if (oidc) oidcRoutes(api, edge, { sessions, oidc });
      await api.register(
        async (v1) => {
          v1.addHook("onRequest", inOrder(admissionRules(bySession(edge, sessions), unknown)));
          v1.setNotFoundHandler(unknown.refuse);
          originRoutes(v1, edge);
          v1Routes(v1, {
            ...edge,
            // A page loads files from its own origin alone, even where the API's public URL is another.
            urls: {
              base: (request) => `${consoleOrigin(request)}${consoleBase}`,
              api: edge.urls.api,
            },
          });
        },
        { prefix: "/v1" },
      );
      if (operatorToken !== undefined) {
        setUpRoutes(api, edge);
        await api.register(
          async (admin) => {
            const operator = byOperator(sessions);
            admin.addHook("onRequest", inOrder([operator, unknown.rule]));
            admin.setNotFoundHandler(unknown.refuse);
            registerAdmin(admin, edge);
          },
          { prefix: "/admin" },
        );
      }
    },
    { prefix: "/api" },
  );
}

/** Admits operators alone. */
function byOperator(sessions: Sessions): Rule {
  return async (request) => {
    request.session = (await sessions.find(request)).session;
    requireOperator(request);
    if (request.routeOptions.config.asksSecret) await sessions.confirmSecret(request);
    return undefined;
  };
}

/** Admits by the session's cookie. An Authorization header has no meaning here. */
function bySession(edge: Edge, sessions: Sessions): Admit {
  return async (request: FastifyRequest, scope, deferral) => {
    const { session, key } = await sessions.find(request);
    request.session = session;
    if (!key) {
      refuse(ErrorReason.PERMISSION_DENIED, {
        message: "Sign in with an API key to do this: an operator's sign-in has no key.",
      });
    }
    if (request.routeOptions.config.asksSecret) await sessions.confirmSecret(request);
    return edge.admission.admitKey(key, scope, deferral);
  };
}
