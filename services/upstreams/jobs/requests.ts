// Shows an operator the requests that a declaration would send, without sending any. `genmesh catalog check` prints them.

import type { JsonObject } from "#kit/base/json.ts";
import type { Model, Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { inputsOf, sampleJob } from "../online/samples.ts";
import { declarationOf } from "./abilities.ts";
import { routeOf, urlOfStep } from "./paths.ts";

/** A request that begins a task, without its key. */
export interface SampleRequest {
  method: string;
  url: string;
  headers: Readonly<Record<string, string>>;
  body: JsonObject;
}

/** The requests that a model's offers would send to its upstream: each choice of a caller in turn, each request once. */
export function sampleRequests(upstream: Upstream, model: Model): SampleRequest[] {
  const { create, headers, origins } = declarationOf(upstream);
  const { method, path } = routeOf(create);
  const known = new Map<string, SampleRequest>();
  for (const call of model.calls) {
    const values = { model: call.model, job: sampleJob };
    const url = urlOfStep(path, values, { baseUrl: upstream.baseUrl, origins });
    for (const body of inputsOf(model, call)) {
      const request = { method, url, headers: { ...headers, ...create.headers }, body };
      known.set(JSON.stringify(request), request);
    }
  }
  return [...known.values()];
}
