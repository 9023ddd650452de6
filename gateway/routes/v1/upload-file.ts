// The operation that uploads an image. `upload-form.ts` reads the form, and media stores the image while it comes.

import type { MessageInitShape } from "@bufbuild/protobuf";
import type { FastifyInstance } from "fastify";
import { ErrorReason } from "#kit/base/errors.ts";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { UploadFileRequestSchema } from "#proto/genmesh/media/v1/media_service_pb.ts";
import type { Edge } from "../../context.ts";
import { bodyReasons, errors, repeatReasons } from "../../error-answers.ts";
import { toFileDocument } from "../../files.ts";
import { deadlinesMs } from "../../limits.ts";
import { callOptions, noteReplayed, type Submission, submissionOf } from "../../request.ts";
import { idempotencyHeader, json, object, type RouteSchema, ref, string } from "../../schemas.ts";
import { maxPurposeLength, openUploadForm, type UploadForm } from "../../upload-form.ts";

const uploadFileSchema: RouteSchema = {
  operationId: "uploadFile",
  summary: "Upload a file",
  description:
    "A JPEG, PNG or WebP image of up to 20 MiB and 50 megapixels, verified by decoding it. It counts toward the " +
    "account's upload quota.",
  tags: ["Files"],
  headers: idempotencyHeader,
  consumes: ["multipart/form-data"],
  body: object(
    {
      purpose: string("Free text, e.g. `vision`.", { maxLength: maxPurposeLength }),
      file: string("The image.", { format: "binary" }),
    },
    ["purpose", "file"],
  ),
  response: {
    200: json("The file.", ref("File")),
    ...errors(
      ...bodyReasons,
      ...repeatReasons,
      ErrorReason.INVALID_IMAGE,
      ErrorReason.IMAGE_TOO_LARGE,
      ErrorReason.UPLOAD_QUOTA_EXCEEDED,
    ),
  },
};

/** `POST /files`: an image into the account's file storage. */
export function uploadFile(app: FastifyInstance, edge: Edge): void {
  app.route({
    method: "POST",
    url: "/files",
    config: { scope: Scope.FILES, idempotent: true, takesForm: true },
    schema: uploadFileSchema,
    handler: async (request, reply) => {
      const form = openUploadForm(edge.bodies, request, reply);
      await form.header;
      const options = callOptions(request, reply, deadlinesMs.upload);
      let broken: unknown;
      const parts = messages(form, submissionOf(request), (error) => {
        broken = error;
      });
      try {
        const { file, replayed } = await edge.peers.media.uploadFile(parts, options);
        if (!file) throw new Error("media stored no file and did not refuse");
        noteReplayed(reply, replayed);
        return reply.send(toFileDocument(file));
      } catch (error) {
        form.abandon(error as Error);
        // The form's own fault is more useful than the call's error that followed from it.
        throw broken ?? error;
      }
    },
  });
}

async function* messages(
  form: UploadForm,
  submission: Submission,
  onBroken: (error: unknown) => void,
): AsyncGenerator<MessageInitShape<typeof UploadFileRequestSchema>> {
  const header = { ...(await form.header), ...submission };
  yield { part: { case: "header", value: header } };
  try {
    for await (const value of form.chunks()) yield { part: { case: "chunk", value } };
  } catch (error) {
    onBroken(error);
    throw error;
  }
}
