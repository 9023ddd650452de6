import { isJsonObject, type JsonValue } from "#kit/base/json.ts";
import type { OnlineCheck } from "../online/index.ts";

/** Searches for the model in the list that servers with OpenAI's API have. */
export const checkListedOnline: OnlineCheck = async ({ upstream, model, read }) => {
  const { value, fault } = await read(upstream, `${upstream.baseUrl}/models`);
  if (fault !== undefined) return [{ path: [], message: `the server's list of models ${fault}` }];
  const ids = idsIn(value);
  // Ollama lists a model without a tag by its usual tag.
  if (ids.has(model.upstreamModel) || ids.has(`${model.upstreamModel}:latest`)) return [];
  const message = `the server lists no model '${model.upstreamModel}'`;
  return [{ path: ["upstreamModel"], message }];
};

function idsIn(value: JsonValue | undefined): ReadonlySet<string> {
  const data = isJsonObject(value) && Array.isArray(value.data) ? value.data : [];
  const ids = data.filter(isJsonObject).map(({ id }) => id);
  return new Set(ids.filter((id) => typeof id === "string"));
}
