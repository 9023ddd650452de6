// The operation that lists uploaded files. Media answers it.

import type { FastifyInstance } from "fastify";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { Edge } from "../../context.ts";
import { errors, queryReasons } from "../../error-answers.ts";
import { toFileDocument } from "../../files.ts";
import { deadlinesMs, pageLimits } from "../../limits.ts";
import { queryLimit, queryOneOf, queryString } from "../../query.ts";
import { callOptions } from "../../request.ts";
import {
  arrayOf,
  boolean,
  integer,
  json,
  object,
  type RouteSchema,
  ref,
  string,
  stringOrNull,
} from "../../schemas.ts";

const listFilesSchema: RouteSchema = {
  operationId: "listFiles",
  summary: "List files",
  description: "The account's uploads and imports.",
  tags: ["Files"],
  querystring: object({
    limit: integer("Files a page.", {
      minimum: 1,
      maximum: pageLimits.files.most,
      default: pageLimits.files.default,
    }),
    after: string("`last_id` of the page before."),
    order: string("By time.", { enum: ["asc", "desc"], default: "desc" }),
    purpose: string("Only of this purpose."),
  }),
  response: {
    200: json(
      "A page.",
      object(
        {
          object: string("", { enum: ["list"] }),
          data: arrayOf(ref("File"), "Files."),
          first_id: stringOrNull("First of the page."),
          last_id: stringOrNull("Last of the page."),
          has_more: boolean("True where more follow."),
          quota: object({
            usedBytes: integer("What the account's uploads and imports take of it."),
            limitBytes: integer("All of it."),
            files: integer("How many uploads and imports the account has."),
          }),
        },
        ["object", "data", "has_more"],
      ),
    ),
    ...errors(...queryReasons),
  },
};

/** `GET /files`: the account's uploads and imports, by default newest first. */
export function listFiles(app: FastifyInstance, edge: Edge): void {
  app.route({
    method: "GET",
    url: "/files",
    config: { scope: Scope.FILES, reads: true },
    schema: listFilesSchema,
    handler: async (request, reply) => {
      const { files, hasMore, quota } = await edge.peers.media.listFiles(
        {
          pageSize: queryLimit(request, pageLimits.files),
          after: queryString(request, "after") ?? "",
          purpose: queryString(request, "purpose") ?? "",
          ascending: queryOneOf(request, "order", { asc: true, desc: false }) ?? false,
        },
        callOptions(request, reply, deadlinesMs.quick),
      );
      return reply.send({
        object: "list",
        data: files.map(toFileDocument),
        first_id: files[0]?.fileId ?? null,
        last_id: files.at(-1)?.fileId ?? null,
        has_more: hasMore,
        ...(quota
          ? {
              quota: {
                usedBytes: Number(quota.usedBytes),
                limitBytes: Number(quota.limitBytes),
                files: Number(quota.files),
              },
            }
          : {}),
      });
    },
  });
}
