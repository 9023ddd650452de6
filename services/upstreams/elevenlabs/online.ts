// For `genmesh catalog check --online`: asks ElevenLabs whether it has a model and its voices.

import type { OnlineCheck } from "../online/index.ts";
import { type ModelList, readList, textsOf } from "../online/lists.ts";

/** ElevenLabs' list of models. */
export const listOfElevenLabs: ModelList = {
  path: "/models",
  names: (document) => (Array.isArray(document) ? textsOf(document, "model_id") : []),
};

/** Checks the model, and each voice. */
export const checkElevenLabsOnline: OnlineCheck = async ({ upstream, model, read }) => {
  const { value, fault } = await readList(read, upstream, listOfElevenLabs);
  if (fault !== undefined) return [{ path: [], message: `ElevenLabs' list of models ${fault}` }];
  const isThere = listOfElevenLabs.names(value).includes(model.upstreamModel);
  const message = `ElevenLabs has no model '${model.upstreamModel}'`;
  if (model.spec.case !== "speech") return [];
  const { voices, upstreamVoices } = model.spec.value;
  const ofVoices = await Promise.all(
    voices.map(async (voice, index) => {
      const id = upstreamVoices[voice] ?? voice;
      const found = await read(upstream, `${upstream.baseUrl}/voices/${encodeURIComponent(id)}`);
      const path = id === voice ? ["voices", index] : ["upstreamVoices", voice];
      return found.fault === undefined
        ? []
        : [{ path, message: `ElevenLabs' description of the voice ${found.fault}` }];
    }),
  );
  return [...(isThere ? [] : [{ path: ["upstreamModel"], message }]), ...ofVoices.flat()];
};
