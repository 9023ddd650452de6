// The operation that opens a WebSocket for responses. The folder websocket does all behind it.

import type { FastifyInstance } from "fastify";
import { ErrorReason } from "#kit/base/errors.ts";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { Edge } from "../../context.ts";
import { errors } from "../../error-answers.ts";
import type { RouteSchema } from "../../schemas.ts";

const connectResponsesSchema: RouteSchema = {
  operationId: "connectResponses",
  summary: "Open a WebSocket for responses",
  description:
    "A text frame `{type: response.create, …}` with the body of `POST /responses` is answered with the events of its stream, a text " +
    "frame each. An error is `{type: error, status, error, headers}`, and ends one request alone. `previous_response_id` names the " +
    "latest response of this WebSocket: then `input` holds only what is new, and the whole conversation is charged as input. " +
    "`generate: false` has no output and costs nothing. `stream_id` names a lane, and comes back in its frames. Requests of a lane are answered " +
    "one after the other; those of other lanes too, unless the operator has lanes answered side by side. A WebSocket takes requests for 60 minutes.",
  tags: ["Text"],
  response: {
    101: { description: "The WebSocket.", type: "null" },
    ...errors(ErrorReason.INVALID_VALUE, ErrorReason.WEBSOCKET_UNSUPPORTED),
  },
};

/** `GET /responses`: responses over a WebSocket. */
export function connectResponses(app: FastifyInstance, edge: Edge): void {
  app.route({
    method: "GET",
    url: "/responses",
    exposeHeadRoute: false,
    config: { scope: Scope.TEXT },
    schema: connectResponsesSchema,
    handler: (request, reply) => edge.sockets.accept(request, reply),
  });
}
