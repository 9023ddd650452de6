// For `genmesh catalog check --online`: asks fal whether its models take what the catalog's calls send.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import type { OnlineCheck } from "../online/index.ts";
import { callAgainst } from "../online/templates.ts";
import { queueOrigin } from "./upload.ts";

/** The origin where fal describes its models. It takes no key. A test server for fal has one origin. */
const schemaOrigin = "https://fal.ai";

/** Compares calls with fal's OpenAPI document of each model. */
export const checkFalOnline: OnlineCheck = async ({ upstream, model, read }) => {
  const { origin } = new URL(upstream.baseUrl);
  const base = origin === queueOrigin ? schemaOrigin : origin;
  const found = await Promise.all(
    model.calls.map(async (call) => {
      const url = `${base}/api/openapi/queue/openapi.json?endpoint_id=${encodeURIComponent(call.model)}`;
      const { value, fault } = await read(upstream, url, { key: "none" });
      if (fault !== undefined) {
        return [{ call, path: ["model"], message: `fal's description of the model ${fault}` }];
      }
      if (!isJsonObject(value)) return [];
      const schemas = { document: value, ...schemasOf(value) };
      return callAgainst(model, call, schemas).map((one) => ({ call, ...one }));
    }),
  );
  return found.flat();
};

/** The document's schema for the input of a submission, and for a result. */
function schemasOf({ paths }: JsonObject): { input: JsonValue; output: JsonValue } {
  const all = isJsonObject(paths) ? Object.entries(paths) : [];
  const post = all.map(([, path]) => at(path, "post")).find(isJsonObject);
  const result = all.find(([path]) => path.endsWith("/requests/{request_id}"))?.[1];
  const schema = ["content", "application/json", "schema"];
  return {
    input: at(post, "requestBody", ...schema) ?? null,
    output: at(result, "get", "responses", "200", ...schema) ?? null,
  };
}

function at(value: JsonValue | undefined, ...steps: string[]): JsonValue | undefined {
  return steps.reduce<JsonValue | undefined>(
    (found, step) => (isJsonObject(found) ? found[step] : undefined),
    value,
  );
}
