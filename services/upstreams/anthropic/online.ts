// For `genmesh catalog check --online`: asks Anthropic whether it has a model.

import type { OnlineCheck } from "../online/index.ts";
import { idsInData, type ModelList, readList } from "../online/lists.ts";
import { apiVersion } from "./betas.ts";

/** Models on a page of the list. It is the most that Anthropic gives at once, and more than it has. */
const pageModels = 1_000;
const headers = { "anthropic-version": apiVersion };

/** Anthropic's list of models. */
export const listOfAnthropic: ModelList = {
  path: `/models?limit=${pageModels}`,
  headers,
  names: idsInData,
};

/** Searches for the model in Anthropic's list. Its short names, like `claude-opus-5-5`, have no line of their own: each is asked for. */
export const checkAnthropicOnline: OnlineCheck = async ({ upstream, model, read }) => {
  const { upstreamModel } = model;
  const { value, fault } = await readList(read, upstream, listOfAnthropic);
  if (fault !== undefined) return [{ path: [], message: `the server's list of models ${fault}` }];
  if (listOfAnthropic.names(value).includes(upstreamModel)) return [];
  const url = `${upstream.baseUrl}/models/${encodeURIComponent(upstreamModel)}`;
  const one = await read(upstream, url, { headers });
  if (one.fault === undefined) return [];
  return [{ path: ["upstreamModel"], message: `the server lists no model '${upstreamModel}'` }];
};
