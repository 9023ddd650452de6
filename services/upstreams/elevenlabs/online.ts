import { isJsonObject } from "#kit/base/json.ts";
import type { OnlineCheck } from "../online/index.ts";

/** Checks the model, and each voice. */
export const checkElevenLabsOnline: OnlineCheck = async ({ upstream, model, read }) => {
  const { value, fault } = await read(upstream, `${upstream.baseUrl}/models`);
  if (fault !== undefined) return [{ path: [], message: `ElevenLabs' list of models ${fault}` }];
  const models = Array.isArray(value) ? value.filter(isJsonObject) : [];
  const isThere = models.some(({ model_id: id }) => id === model.upstreamModel);
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
