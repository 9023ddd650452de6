import type { FastifyInstance } from "fastify";
import type { Edge } from "../../context.ts";
import { compactConversation } from "./compact-conversation.ts";
import { createChatCompletion } from "./create-chat-completion.ts";
import { createResponse } from "./create-response.ts";
import { createSpeech } from "./create-speech.ts";
import { deleteFile } from "./delete-file.ts";
import { downloadOutput } from "./download-output.ts";
import { downloadSpeech } from "./download-speech.ts";
import { downloadUpload } from "./download-upload.ts";
import { getBilling } from "./get-billing.ts";
import { getFile } from "./get-file.ts";
import { getJob } from "./get-job.ts";
import { getModel } from "./get-model.ts";
import { listFiles } from "./list-files.ts";
import { listJobs } from "./list-jobs.ts";
import { listModels } from "./list-models.ts";
import { submitJob } from "./submit-job.ts";
import { uploadFile } from "./upload-file.ts";
import { watchJob } from "./watch-job.ts";

/** Every operation of the public API, in the order of its documentation. Registering touches nothing of `edge`. */
export function v1Routes(app: FastifyInstance, edge: Edge): void {
  listModels(app, edge);
  getModel(app, edge);
  getBilling(app, edge);
  createResponse(app, edge);
  compactConversation(app, edge);
  createChatCompletion(app, edge);
  submitJob(app, edge);
  getJob(app, edge);
  downloadOutput(app, edge);
  listJobs(app, edge);
  watchJob(app, edge);
  createSpeech(app, edge);
  downloadSpeech(app, edge);
  uploadFile(app, edge);
  listFiles(app, edge);
  getFile(app, edge);
  downloadUpload(app, edge);
  deleteFile(app, edge);
}
