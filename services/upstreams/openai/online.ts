// For `genmesh catalog check --online`: asks a server with OpenAI's API whether it has a model.

import type { OnlineCheck } from "../online/index.ts";
import { idsInData, type ModelList, readList } from "../online/lists.ts";

/** The list that servers with OpenAI's API have. */
export const listOfOpenAi: ModelList = { path: "/models", names: idsInData };

/** Searches for the model in the list. */
export const checkListedOnline: OnlineCheck = async ({ upstream, model, read }) => {
  const { value, fault } = await readList(read, upstream, listOfOpenAi);
  if (fault !== undefined) return [{ path: [], message: `the server's list of models ${fault}` }];
  const ids = new Set(listOfOpenAi.names(value));
  // Ollama lists a model without a tag by its usual tag.
  if (ids.has(model.upstreamModel) || ids.has(`${model.upstreamModel}:latest`)) return [];
  const message = `the server lists no model '${model.upstreamModel}'`;
  return [{ path: ["upstreamModel"], message }];
};
