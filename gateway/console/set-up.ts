// The routes of the page where a new operator sets up a password and an authenticator by a link. There is no session yet.

import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { requiredString } from "#common/words/body.ts";
import { audited } from "#common/words/operator-actions.ts";
import { type JsonObject, parseJsonBody } from "#kit/base/json.ts";
import type { Edge } from "../context.ts";
import { refuseToOperator } from "./admin/context.ts";
import { sentPasswordChars } from "./admin/limits.ts";
import { signInBodyBytes, signInBodyMs } from "./limits.ts";
import { namedActor } from "./session.ts";
import { adminCallOf, clientOf } from "./sessions.ts";

/**
 * The routes of the page where an operator sets up a password, a second factor, or both, with a link. The link's token opens them, no
 * session.
 */
export function setUpRoutes(app: FastifyInstance, edge: Edge): void {
  const { auth } = edge.peers;
  const route = (
    path: string,
    handle: (body: JsonObject, request: FastifyRequest) => Promise<object>,
  ) =>
    app.post(path, async (request: FastifyRequest, reply: FastifyReply) => {
      const sent = await edge.bodies.json(request, reply, signInBodyBytes, signInBodyMs);
      return handle(parseJsonBody(sent), request).catch(refuseToOperator);
    });
  route("/set-up/begin", async (body, request) => {
    const link = readLink(body);
    const call = adminCallOf(edge, request);
    const { needsPassword, needsTotp } = await auth.getOperatorSetUp(link, call);
    const { uri } = needsTotp ? await auth.draftTotp({ name: link.name }, call) : { uri: null };
    return { object: "operator.set_up", needsPassword, needsTotp, totpUri: uri };
  });
  route("/set-up", async (body, request) => {
    const link = readLink(body);
    const call = adminCallOf(edge, request);
    const asked = {
      ...link,
      password: requiredString(body, "password", sentPasswordChars),
      code: requiredString(body, "code", { min: 1, max: 64 }),
      totpSecret: body.totpSecret === undefined ? "" : requiredString(body, "totpSecret", word),
      client: clientOf(request),
    };
    // A stranger without a link writes no line of the audit log.
    await auth.getOperatorSetUp(link, call);
    const log = {
      beginAction: (message: Parameters<typeof auth.beginAction>[0]) =>
        auth.beginAction(message, call),
      endAction: (message: Parameters<typeof auth.endAction>[0]) => auth.endAction(message, call),
    };
    const actor = namedActor(link.name.toLowerCase());
    const { recoveryCodes } = await audited(
      { auth: log, ids: edge.ids, actor },
      { action: "operator.set_up", target: link.name.toLowerCase() },
      () => auth.setUpOperator(asked, call),
    );
    return { object: "recovery_codes", recoveryCodes };
  });
}

/** Characters of a short text in a body. */
const word = { min: 1, max: 64 };

function readLink(body: JsonObject) {
  return {
    name: requiredString(body, "name", word),
    setUpToken: requiredString(body, "token", word),
  };
}
