// Reads an answer with a transcription, and writes the form in which audio is sent for one.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import type { FormField } from "../form.ts";
import { type Fields, only } from "./allowed.ts";
import { UpstreamFailure } from "./failure.ts";
import { type ReportedUsage, type Sound, secondsOfUnits, soundUnitMs } from "./port.ts";
import type { ReadAnswer } from "./responses/json-answer.ts";

/** The fields of a transcription that callers see. */
const shown: Fields = {
  text: "plain",
  task: "plain",
  language: "plain",
  duration: "plain",
  logprobs: [{ token: "plain", logprob: "plain", bytes: "list" }],
  words: [{ word: "plain", start: "plain", end: "plain" }],
  segments: [
    {
      id: "plain",
      seek: "plain",
      start: "plain",
      end: "plain",
      text: "plain",
      tokens: "list",
      temperature: "plain",
      avg_logprob: "plain",
      compression_ratio: "plain",
      no_speech_prob: "plain",
    },
  ],
};

/** The length of audio by its container, and its greatest possible length. */
export type SoundUnits = Pick<Sound, "units" | "mostUnits">;

/**
 * A transcription as callers see it. It is charged by the seconds that its container or the upstream reports, by the larger number of the
 * two, up to the seconds of the hold. Throws `UpstreamFailure` where the object is no transcription.
 */
export function readTranscription(found: JsonObject, { units, mostUnits }: SoundUnits): ReadAnswer {
  if (typeof found.text !== "string") throw new UpstreamFailure("garbage");
  const inputTokens = Math.min(Math.max(units, unitsIn(found) ?? 0), mostUnits);
  const usage: ReportedUsage = { inputTokens, cachedInputTokens: 0, outputTokens: 0 };
  const seconds = secondsOfUnits(inputTokens);
  return {
    object: { ...only(found, shown), usage: { type: "duration", seconds } },
    ending: "completed",
    usage,
    outputText: "",
    opaque: [],
  };
}

function unitsIn({ usage, duration }: JsonObject): number | undefined {
  const seconds = isJsonObject(usage) && usage.type === "duration" ? usage.seconds : duration;
  if (typeof seconds !== "number" || !(seconds > 0)) return undefined;
  return Math.ceil((seconds * 1_000) / soundUnitMs);
}

/** A body and its audio as the fields of a form. A list becomes a field for each of its values. */
export function fieldsOf(body: JsonObject, { bytes, fileName, mimeType }: Sound): FormField[] {
  const fields = Object.entries(body).flatMap(([name, value]): FormField[] =>
    Array.isArray(value) ? value.map((one) => [`${name}[]`, textOf(one)]) : [[name, textOf(value)]],
  );
  return [...fields, ["file", { bytes, fileName, mimeType }]];
}

function textOf(value: JsonValue | undefined): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
