import type { MessageInitShape } from "@bufbuild/protobuf";
import type { FastifyInstance } from "fastify";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { UploadFileRequestSchema } from "#proto/genmesh/media/v1/media_service_pb.ts";
import type { Admitted, Edge } from "../../context.ts";
import { deadlinesMs } from "../../limits.ts";
import { toFileDocument } from "../../mappers/file.ts";
import { callerOf, callOptions, idempotencyKeyOf } from "../../request.ts";
import { uploadFileSchema } from "../../schemas/files.ts";
import { openUploadForm, type UploadForm } from "../../upload-form.ts";

/** `POST /files`: an image into the account's file storage. */
export function uploadFile(app: FastifyInstance, edge: Edge): void {
  app.route({
    method: "POST",
    url: "/files",
    config: { scope: Scope.FILES, idempotent: true },
    schema: uploadFileSchema,
    handler: async (request, reply) => {
      const form = openUploadForm(edge.bodies, request, reply);
      await form.header;
      const { admission } = callerOf(request);
      const options = callOptions(request, reply, deadlinesMs.upload);
      let broken: unknown;
      const parts = messages(form, admission, idempotencyKeyOf(request), (error) => {
        broken = error;
      });
      try {
        const { file, replayed } = await edge.peers.media.uploadFile(parts, options);
        if (!file) throw new Error("media stored no file and did not refuse");
        if (replayed) reply.header("idempotency-replayed", "true");
        return reply.send(toFileDocument(file));
      } catch (error) {
        form.abandon(error as Error);
        // What was wrong with the form says more than that the call broke for it.
        throw broken ?? error;
      }
    },
  });
}

async function* messages(
  form: UploadForm,
  admission: Admitted["admission"],
  idempotencyKey: string | undefined,
  onBroken: (error: unknown) => void,
): AsyncGenerator<MessageInitShape<typeof UploadFileRequestSchema>> {
  const header = {
    ...(await form.header),
    admission,
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
  };
  yield { part: { case: "header", value: header } };
  try {
    for await (const value of form.chunks()) yield { part: { case: "chunk", value } };
  } catch (error) {
    onBroken(error);
    throw error;
  }
}
