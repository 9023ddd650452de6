// Finds faults between the keys of one model that are peculiar to its kind: chat, speech, video. `rules.ts` has the rules for
// models of all kinds.

import { eachValid, type FoundFault } from "#kit/base/valid-parts.ts";
import type { At } from "../upstreams/catalog-rules.ts";
import { bytesPerToken } from "./limits.ts";
import { pricingFaults } from "./prices.ts";
import type { CatalogFile, CatalogModel, CatalogModelOf } from "./schema.ts";

/** One or more faults, or none. */
export type Rule = () => readonly FoundFault[];

/** The rules for a model of its kind. */
export function kindRules(file: CatalogFile, model: CatalogModel, at: At): Rule[] {
  if (model.kind === "chat") return chatRules(file, model, at);
  if (model.kind === "speech") {
    const message = "must hold mp3, which /speech/generations answers with";
    const isRight = model.formats.includes("mp3");
    return [
      () => voiceFaults(model, at),
      () => (isRight ? [] : [{ path: at("formats"), message }]),
    ];
  }
  return model.kind === "video" ? videoRules(model, at) : [];
}

function voiceFaults({ voices, upstreamVoices }: CatalogModelOf<"speech">, at: At): FoundFault[] {
  const message = "is none of the model's voices";
  const strange = Object.keys(upstreamVoices).filter((voice) => !voices.includes(voice));
  return strange.map((voice) => ({ path: at("upstreamVoices", voice), message }));
}

function chatRules(file: CatalogFile, model: CatalogModelOf<"chat">, at: At): Rule[] {
  const unless = (isRight: boolean, name: string, message: string): FoundFault[] =>
    isRight ? [] : [{ path: at(name), message }];
  return [
    () =>
      unless(
        model.maxOutputTokens <= model.maxInputTokens,
        "maxOutputTokens",
        "must be at most maxInputTokens",
      ),
    () =>
      unless(
        model.safetyMarginTokens < model.maxInputTokens,
        "safetyMarginTokens",
        "must be below maxInputTokens",
      ),
    () => unless(model.inputModalities.includes("text"), "inputModalities", "must hold text"),
    () =>
      unless(
        !model.tools.includes("*") || model.tools.length === 1,
        "tools",
        'must hold nothing else beside "*"',
      ),
    () => aliasFaults(model, at),
    () => promptFaults(file, model, at),
    () => pricingFaults(model.pricing, (...rest) => at("pricing", ...rest)),
    () =>
      eachValid(model.passParameters, (name, index) => {
        const message = "is decided here, whatever this list says";
        return decidedHere.has(name) ? [{ path: at("passParameters", index), message }] : [];
      }),
  ];
}

/** Properties of a text request that never go to an upstream in the caller's form, or always do. */
const decidedHere: ReadonlySet<string> = new Set([
  "background",
  "conversation",
  "input",
  "instructions",
  "max_completion_tokens",
  "max_output_tokens",
  "max_tokens",
  "messages",
  "model",
  "n",
  "previous_response_id",
  "prompt",
  "service_tier",
  "store",
  "stream",
  "stream_options",
]);

function promptFaults(file: CatalogFile, model: CatalogModelOf<"chat">, at: At): FoundFault[] {
  const own = model.developerPrompt;
  const bytes = Buffer.byteLength(own ?? file.developerPrompt);
  if (bytes <= model.maxInputTokens * bytesPerToken) return [];
  return own === undefined
    ? [
        {
          path: at("maxInputTokens"),
          message: "is too small for the developerPrompt of all models",
        },
      ]
    : [{ path: at("developerPrompt"), message: "is too long for maxInputTokens" }];
}

function aliasFaults(model: CatalogModelOf<"chat">, at: At): FoundFault[] {
  const faults: FoundFault[] = [];
  const efforts = new Map(model.reasoningEfforts.map((effort) => [effort.toLowerCase(), effort]));
  const seen = new Set<string>();
  for (const [alias, effort] of Object.entries(model.reasoningAliases)) {
    const path = at("reasoningAliases", alias);
    const folded = alias.toLowerCase();
    const own = efforts.get(folded);
    if (!model.reasoningEfforts.includes(effort)) {
      faults.push({ path, message: "must be one of reasoningEfforts" });
    } else if (seen.has(folded)) {
      faults.push({ path, message: "is there already, written in another case" });
    } else if (own !== undefined && own !== effort) {
      faults.push({ path, message: "is itself one of reasoningEfforts" });
    }
    seen.add(folded);
  }
  return faults;
}

function videoRules(model: CatalogModelOf<"video">, at: At): Rule[] {
  const { videoOptions } = model;
  const taken = new Set<string>();
  return [
    () =>
      eachValid(videoOptions, (row, index) => {
        if (!row.active) return [];
        return row.modes.flatMap((mode, place) => {
          const key = `${row.durationSeconds} ${row.resolution} ${mode}`;
          const path = at("videoOptions", index, "modes", place);
          if (taken.has(key)) {
            return [{ path, message: "another row has this duration, resolution and mode" }];
          }
          taken.add(key);
          return [];
        });
      }),
    () => {
      if (model.maxReferences > 0) return [];
      return eachValid(videoOptions, (row, index) => {
        const place = row.active ? row.modes.indexOf("i2v") : -1;
        if (place < 0) return [];
        const path = at("videoOptions", index, "modes", place);
        return [{ path, message: "i2v needs maxReferences of at least 1" }];
      });
    },
    () =>
      videoOptions.some((row) => row.active)
        ? []
        : [{ path: at("videoOptions"), message: "must hold an active row" }],
    () =>
      model.firstLastFrame && model.maxReferences < 2
        ? [{ path: at("firstLastFrame"), message: "needs maxReferences of at least 2" }]
        : [],
  ];
}
