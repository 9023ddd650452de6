// Finds the outputs in the answer of a model that is called by a template, and has them fetched and stored. Several drivers share
// it.

import type { JsonObject, JsonValue } from "#kit/base/json.ts";
import { parseOutputPath, readOutputPath } from "#kit/template/output-path.ts";
import type { DriverContext } from "../media/context.ts";
import type { Download } from "../media/download.ts";
import { failed } from "../media/faults.ts";
import { fetchOutputs } from "../media/fetch-output.ts";
import type { FileAnswers } from "../media/file-answers.ts";
import { type GeneratedOutput, GenerationError, type GenerationTask } from "../media/port.ts";
import { callOf } from "./call.ts";

/**
 * Gets, verifies and stores the outputs that an answer names, or holds, at the place that the model's call gives. By default no key is
 * sent for them, because their upstream gives them to everyone with their URL. Outputs that the answer marks as refused are left out. The others
 * were made and cost the operator the same. Rejects with `content_policy` where none is left, and with `failed` where there are too
 * few.
 */
export async function outputsOf(
  context: DriverContext,
  task: GenerationTask,
  answer: JsonObject,
  answers: FileAnswers,
  key: NonNullable<Download["key"]> = "none",
): Promise<GeneratedOutput[]> {
  const { request } = task;
  const call = callOf(task);
  const count = request.kind === "image" ? request.count : 1;
  const refused = call.refused === "" ? [] : found(call.refused, answer).slice(0, count);
  const urls = found(call.output, answer).filter((value) => typeof value === "string");
  const refusals = refused.filter((mark) => mark === true).length;
  // With fewer marks than outputs, the answer does not show which of them was refused.
  if (refusals > 0 && (refusals === count || refused.length < count)) {
    throw new GenerationError("content_policy", "the upstream refused what it made");
  }
  if (urls.length < count - refusals) throw failed("the upstream made too few outputs");
  // Refused ones are in their places, black, or are left out.
  const isInPlace = urls.length >= count;
  if (!isInPlace && urls.length > count - refusals) {
    throw new GenerationError("content_policy", "the upstream refused some of what it made");
  }
  const made = urls.slice(0, count).filter((_, index) => !isInPlace || refused[index] !== true);
  const files = made.map((url) => ({ url: answers.text(url), key }) as const);
  return fetchOutputs(context, task, answers, files);
}

function found(text: string, answer: JsonObject): JsonValue[] {
  const path = parseOutputPath(text);
  if (!path) throw failed("the model's call has no such path");
  return readOutputPath(path, answer);
}
