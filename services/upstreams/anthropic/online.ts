import { isJsonObject } from "#kit/base/json.ts";
import type { OnlineCheck } from "../online/index.ts";
import { apiVersion } from "./betas.ts";

/** Models on a page of the list. It is the most that Anthropic gives at once, and more than it has. */
const pageModels = 1_000;

/** Searches for the model in Anthropic's list. Its short names, like `claude-opus-5-5`, have no line of their own: each is asked for. */
export const checkAnthropicOnline: OnlineCheck = async ({ upstream, model, read }) => {
  const { upstreamModel } = model;
  const headers = { "anthropic-version": apiVersion };
  const list = `${upstream.baseUrl}/models`;
  const { value, fault } = await read(upstream, `${list}?limit=${pageModels}`, { headers });
  if (fault !== undefined) return [{ path: [], message: `the server's list of models ${fault}` }];
  const data = isJsonObject(value) && Array.isArray(value.data) ? value.data : [];
  if (data.some((one) => isJsonObject(one) && one.id === upstreamModel)) return [];
  const one = await read(upstream, `${list}/${encodeURIComponent(upstreamModel)}`, { headers });
  if (one.fault === undefined) return [];
  return [{ path: ["upstreamModel"], message: `the server lists no model '${upstreamModel}'` }];
};
