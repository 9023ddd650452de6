import type { FastifyInstance } from "fastify";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { Edge } from "../../context.ts";
import { deadlinesMs, pageLimits } from "../../limits.ts";
import { toFileDocument } from "../../mappers/file.ts";
import { queryLimit, queryOneOf, queryString } from "../../query.ts";
import { callOptions } from "../../request.ts";
import { listFilesSchema } from "../../schemas/files.ts";

/** `GET /files`: the account's uploads and imports, newest first unless asked otherwise. */
export function listFiles(app: FastifyInstance, edge: Edge): void {
  app.route({
    method: "GET",
    url: "/files",
    config: { scope: Scope.FILES },
    schema: listFilesSchema,
    handler: async (request, reply) => {
      const { files, hasMore } = await edge.peers.media.listFiles(
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
      });
    },
  });
}
