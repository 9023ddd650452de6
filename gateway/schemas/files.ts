import { pageLimits } from "../limits.ts";
import {
  arrayOf,
  boolean,
  downloadAnswers,
  downloadHeaders,
  downloadQuery,
  errors,
  idempotencyHeader,
  integer,
  json,
  object,
  type RouteSchema,
  ref,
  string,
} from "./common.ts";

const params = object({ fileId: string("The file.") }, ["fileId"]);

export const uploadFileSchema: RouteSchema = {
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
      purpose: string("Free text, e.g. `vision`.", { maxLength: 64 }),
      file: string("The image.", { format: "binary" }),
    },
    ["purpose", "file"],
  ),
  response: { 200: json("The file.", ref("File")), ...errors(400, 413, 415, 422) },
};

export const listFilesSchema: RouteSchema = {
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
          first_id: { type: ["string", "null"], description: "First of the page." },
          last_id: { type: ["string", "null"], description: "Last of the page." },
          has_more: boolean("True where more follow."),
        },
        ["object", "data", "has_more"],
      ),
    ),
    ...errors(400),
  },
};

export const getFileSchema: RouteSchema = {
  operationId: "getFile",
  summary: "Get a file",
  description: "What is known of a file of the account.",
  tags: ["Files"],
  params,
  response: { 200: json("The file.", ref("File")), ...errors(404) },
};

export const downloadUploadSchema: RouteSchema = {
  operationId: "downloadFile",
  summary: "Download a file",
  description: "The bytes of a file of the account.",
  tags: ["Files"],
  params,
  querystring: downloadQuery,
  headers: downloadHeaders,
  response: downloadAnswers("image/*"),
};

export const deleteFileSchema: RouteSchema = {
  operationId: "deleteFile",
  summary: "Delete a file",
  description: "Hides it and frees its quota at once.",
  tags: ["Files"],
  params,
  response: {
    200: json(
      "It is gone.",
      object({
        id: string("The file."),
        object: string("", { enum: ["file"] }),
        deleted: boolean("True."),
      }),
    ),
    ...errors(404),
  },
};
