// Makes the input for a model whose input the catalog describes by a template. `values.ts` has the values for it.

import { isJsonObject, type JsonObject } from "#kit/base/json.ts";
import { fill, type Template } from "#kit/template/template.ts";
import type { ModelCall } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { failed } from "../media/faults.ts";
import type { GenerationTask } from "../media/port.ts";
import { valuesOf } from "./values.ts";

/** The call of a task. Throws a `failed` GenerationError where its job has none. */
export function callOf({ call }: Pick<GenerationTask, "call">): ModelCall {
  if (!call) throw failed("the job says of no call of its model");
  return call;
}

/** The input for a task's model. `references`: the upstream's form of each reference. */
export function inputOf(task: GenerationTask, references: readonly string[]): JsonObject {
  const template: Template = JSON.parse(callOf(task).input);
  const { jobId: job, call } = task;
  const named = { model: call?.model, job };
  const input = fill(template, { ...valuesOf(task, references), ...named });
  if (!isJsonObject(input)) throw failed("the model's call has no input");
  return input;
}
