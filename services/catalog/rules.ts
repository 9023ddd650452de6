import { driverFaults } from "./driver-rules.ts";
import type { FaultPath, FoundFault } from "./faults.ts";
import type { CatalogFile } from "./schema.ts";
import type { CatalogModel, CatalogModelOf } from "./schema-model.ts";

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
  return file.models.flatMap((model, index) => {
    const at = (...rest: FaultPath): FaultPath => ["models", index, ...rest];
    const faults: FoundFault[] = [];
    if (ids.has(model.id)) faults.push({ path: at("id"), message: "is the id of another model" });
    ids.add(model.id);
    if (model.default) {
      if (defaults.has(model.kind)) {
        faults.push({ path: at("default"), message: `another ${model.kind} model is the default` });
      }
      defaults.add(model.kind);
    }
    const unserved = upstreamFaults(file, model, at);
    const protocols = unserved.length > 0 ? [] : protocolsOf(file, model);
    return [
      ...faults,
      ...unserved,
      ...kindFaults(model, at),
      ...driverFaults(model, protocols, at),
    ];
  });
}

function protocolsOf(file: CatalogFile, model: CatalogModel): Protocol[] {
  const names = [model.upstream, ...model.fallbackUpstreams];
  return names.flatMap((name) => file.upstreams[name]?.protocol ?? []);
}

type At = (...rest: FaultPath) => FaultPath;

function upstreamFaults(file: CatalogFile, model: CatalogModel, at: At): FoundFault[] {
  const places: [string, FaultPath][] = [
    [model.upstream, at("upstream")],
    ...model.fallbackUpstreams.map((name, i): [string, FaultPath] => [
      name,
      at("fallbackUpstreams", i),
    ]),
  ];
  return places.flatMap(([name, path], place) => {
    const upstream = Object.hasOwn(file.upstreams, name) ? file.upstreams[name] : undefined;
    if (!upstream) return [{ path, message: "names no entry of upstreams" }];
    if (place > 0 && name === model.upstream) {
      return [{ path, message: "is the model's first upstream already" }];
    }
    if (!kindsServed[upstream.protocol].includes(model.kind)) {
      return [{ path, message: `a ${upstream.protocol} upstream serves no ${model.kind} models` }];
    }
    return [];
  });
}

function kindFaults(model: CatalogModel, at: At): FoundFault[] {
  if (model.kind === "chat") return chatFaults(model, at);
  return model.kind === "video" ? videoFaults(model, at) : [];
}

function chatFaults(model: CatalogModelOf<"chat">, at: At): FoundFault[] {
  const faults: FoundFault[] = [];
  if (model.maxOutputTokens > model.maxInputTokens) {
    faults.push({ path: at("maxOutputTokens"), message: "must be at most maxInputTokens" });
  }
  if (model.safetyMarginTokens >= model.maxInputTokens) {
    faults.push({ path: at("safetyMarginTokens"), message: "must be below maxInputTokens" });
  }
  if (!model.inputModalities.includes("text")) {
    faults.push({ path: at("inputModalities"), message: "must hold text" });
  }
  if (model.tools.includes("*") && model.tools.length > 1) {
    faults.push({ path: at("tools"), message: 'must hold nothing else beside "*"' });
  }
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

function videoFaults(model: CatalogModelOf<"video">, at: At): FoundFault[] {
  const faults: FoundFault[] = [];
  const offered = new Set<string>();
  for (const [index, row] of model.videoOptions.entries()) {
    if (!row.active) continue;
    for (const [place, mode] of row.modes.entries()) {
      const path = at("videoOptions", index, "modes", place);
      const key = `${row.durationSeconds} ${row.resolution} ${mode}`;
      if (offered.has(key)) {
        faults.push({ path, message: "another row has this duration, resolution and mode" });
      }
      offered.add(key);
      if (mode === "i2v" && model.maxReferences === 0) {
        faults.push({ path, message: "i2v needs maxReferences of at least 1" });
      }
    }
  }
  if (offered.size === 0) {
    faults.push({ path: at("videoOptions"), message: "must hold an active row" });
  }
  if (model.firstLastFrame && model.maxReferences < 2) {
    faults.push({ path: at("firstLastFrame"), message: "needs maxReferences of at least 2" });
  }
  return faults;
}
