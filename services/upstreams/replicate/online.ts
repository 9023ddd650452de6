// For `genmesh catalog check --online`: asks Replicate whether its models take what the catalog's calls send.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import type { OnlineCheck } from "../online/index.ts";
import { callAgainst } from "../online/templates.ts";

/** Compares calls with the `openapi_schema` of each model's version. */
export const checkReplicateOnline: OnlineCheck = async ({ upstream, model, read }) => {
  const found = await Promise.all(
    model.calls.map(async (call) => {
      const [name = "", version] = call.model.split(":");
      const path = version === undefined ? name : `${name}/versions/${version}`;
      const { value, fault } = await read(upstream, `${upstream.baseUrl}/models/${path}`);
      if (fault !== undefined) {
        return [
          { call, path: ["model"], message: `Replicate's description of the model ${fault}` },
        ];
      }
      const document = documentIn(value);
      if (!document) {
        return [{ call, path: ["model"], message: "Replicate does not describe the model" }];
      }
      const { schemas } = isJsonObject(document.components) ? document.components : document;
      const { Input: input, Output } = isJsonObject(schemas) ? schemas : document;
      // The call's path begins at the prediction.
      const output = { type: "object", properties: { output: Output ?? {} } };
      return callAgainst(model, call, { document, input, output }).map((one) => ({ call, ...one }));
    }),
  );
  return found.flat();
};

/** The document of a version, or of a model's latest one. */
function documentIn(value: JsonValue | undefined): JsonObject | undefined {
  if (!isJsonObject(value)) return undefined;
  const version = isJsonObject(value.latest_version) ? value.latest_version : value;
  return isJsonObject(version.openapi_schema) ? version.openapi_schema : undefined;
}
