// The routes for signing in with a secret or by name, signing out, and asking who is signed in. `oidc.ts` has those for an
// identity provider.

import type { FastifyInstance } from "fastify";
import { requiredString } from "#common/words/body.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { type JsonObject, parseJsonBody } from "#kit/base/json.ts";
import type { Edge } from "../context.ts";
import { sentPasswordChars } from "./admin/limits.ts";
import { signInBodyBytes, signInBodyMs } from "./limits.ts";
import type { ConsoleSession } from "./session.ts";
import type { NamedProof, Sessions } from "./sessions.ts";

/** The path where a sign-in at the identity provider begins. */
export const oidcBeginPath = "/console/api/oidc/begin";

/** Signing in and out, and the facts that are public before that. */
export function sessionRoutes(app: FastifyInstance, edge: Edge, sessions: Sessions): void {
  const { console: settings } = edge.settings;
  app.get("/sign-in", async () => ({
    object: "console.sign_in",
    oidc: settings?.oidc ? { label: new URL(settings.oidc.issuer).host, url: oidcBeginPath } : null,
    operator: settings?.operatorToken !== undefined,
  }));
  app.get("/session", async (request) => {
    const { session } = await sessions.find(request);
    return toSessionDocument(session);
  });
  app.post("/session", async (request, reply) => {
    const body = parseJsonBody(
      await edge.bodies.json(request, reply, signInBodyBytes, signInBodyMs),
    );
    if (body.secret === undefined && body.name !== undefined) {
      const session = await sessions.signInByName(request, reply, readProof(body));
      return reply.code(201).send(toSessionDocument(session));
    }
    const { secret } = body;
    if (secret === undefined) refuse(ErrorReason.MISSING_REQUIRED_PARAMETER, { param: "secret" });
    if (typeof secret !== "string") refuse(ErrorReason.INVALID_TYPE, { param: "secret" });
    const session = await sessions.signIn(request, reply, secret);
    return reply.code(201).send(toSessionDocument(session));
  });
  app.delete("/session", async (request, reply) => {
    await sessions.signOut(request, reply);
    return reply.code(204).send();
  });
}

/** Name, password and code come together, so that no answer says which of them is right. */
function readProof(body: JsonObject): NamedProof {
  return {
    name: requiredString(body, "name", { min: 1, max: 200 }),
    password: requiredString(body, "password", sentPasswordChars),
    code: requiredString(body, "code", { min: 1, max: 64 }),
  };
}

function toSessionDocument(session: ConsoleSession) {
  const { role, key, createdAtMs, endsAtMs, idleEndsAtMs, identity } = session;
  return {
    object: "console.session",
    role,
    accountId: key?.accountId ?? null,
    keyId: key?.keyId ?? null,
    keyName: key?.name ?? null,
    scopes: key?.scopes ?? [],
    models: key?.models ?? [],
    createdAt: new Date(createdAtMs).toISOString(),
    endsAt: new Date(endsAtMs).toISOString(),
    idleEndsAt: new Date(idleEndsAtMs).toISOString(),
    oidc: identity !== undefined,
    operatorName: session.operatorName ?? null,
  };
}
