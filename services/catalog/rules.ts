import { driverFaults } from "./driver-rules.ts";
import type { FaultPath, FoundFault } from "./faults.ts";
import { bytesPerToken } from "./limits.ts";
import type { CatalogFile } from "./schema.ts";
import type { CatalogModel, CatalogModelOf } from "./schema-model.ts";
import { eachSound, whereSound } from "./sound-part.ts";

type Protocol = CatalogFile["upstreams"][string]["protocol"];

/** Kinds that an upstream of each protocol can serve. */
const kindsServed: Record<Protocol, readonly CatalogModel["kind"][]> = {
  openai: ["chat", "image", "video", "speech"],
  "chat-completions": ["chat"],
  genmesh: ["chat", "image", "video", "speech", "music"],
  builtin: ["chat", "image", "video", "speech", "music"],
};

/** What the parts of a file must say of each other, beyond their own types. */
export function crossFaults(file: CatalogFile): FoundFault[] {
  const ids = new Set<string>();
  const defaults = new Set<CatalogModel["kind"]>();
  return eachSound(file.models, (model, index) => {
    const at = (...rest: FaultPath): FaultPath => ["models", index, ...rest];
    return modelFaults(file, model, at, { ids, defaults });
  });
}

/** What the models before one have. */
interface Taken {
  ids: Set<string>;
  defaults: Set<CatalogModel["kind"]>;
}

/** Each rule is asked alone: where one would need a part that is at fault itself, the others still speak. */
function modelFaults(
  file: CatalogFile,
  model: CatalogModel,
  at: At,
  { ids, defaults }: Taken,
): FoundFault[] {
  const rules: Rule[] = [
    () => {
      const isTaken = ids.has(model.id);
      ids.add(model.id);
      return isTaken ? [{ path: at("id"), message: "is the id of another model" }] : [];
    },
    () => {
      if (!model.default) return [];
      const isTaken = defaults.has(model.kind);
      defaults.add(model.kind);
      const message = `another ${model.kind} model is the default`;
      return isTaken ? [{ path: at("default"), message }] : [];
    },
    () => {
      const message = "an inactive model cannot be the default";
      return model.default && !model.active ? [{ path: at("default"), message }] : [];
    },
    ...upstreamRules(file, model, at),
    ...kindRules(file, model, at),
    () => driverFaults(model, protocolsOf(file, model), at),
  ];
  return rules.flatMap(whereSound);
}

/** A fault or more, or none. */
type Rule = () => readonly FoundFault[];

function protocolsOf(file: CatalogFile, model: CatalogModel): Protocol[] {
  const names = [model.upstream, ...model.fallbackUpstreams];
  return names.flatMap((name) => file.upstreams[name]?.protocol ?? []);
}

type At = (...rest: FaultPath) => FaultPath;

function upstreamRules(file: CatalogFile, model: CatalogModel, at: At): Rule[] {
  const fault = (name: string, path: FaultPath, isFirst: boolean): FoundFault[] => {
    const upstream = Object.hasOwn(file.upstreams, name) ? file.upstreams[name] : undefined;
    if (!upstream) return [{ path, message: "names no entry of upstreams" }];
    if (!isFirst && name === model.upstream) {
      return [{ path, message: "is the model's first upstream already" }];
    }
    if (!kindsServed[upstream.protocol].includes(model.kind)) {
      return [{ path, message: `a ${upstream.protocol} upstream serves no ${model.kind} models` }];
    }
    return [];
  };
  return [
    () => fault(model.upstream, at("upstream"), true),
    () =>
      eachSound(model.fallbackUpstreams, (name, index) =>
        fault(name, at("fallbackUpstreams", index), false),
      ),
  ];
}

function kindRules(file: CatalogFile, model: CatalogModel, at: At): Rule[] {
  if (model.kind === "chat") return chatRules(file, model, at);
  return model.kind === "video" ? videoRules(model, at) : [];
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
    () =>
      eachSound(model.passParameters, (name, index) => {
        const message = "is decided here, whatever this list says";
        return decidedHere.has(name) ? [{ path: at("passParameters", index), message }] : [];
      }),
  ];
}

/** Properties of a text request that never go up as the caller wrote them, or always do. */
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
      eachSound(videoOptions, (row, index) => {
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
      return eachSound(videoOptions, (row, index) => {
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
