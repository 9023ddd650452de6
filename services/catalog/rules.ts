// Finds faults between parts of a catalog file, where each part alone is valid. For example, an upstream that is named and not
// there, or that cannot do what a model offers. `schema.ts` judges each key alone.

import type { JsonObject } from "#kit/base/json.ts";
import { eachValid, type FaultPath, type FoundFault, whereValid } from "#kit/base/valid-parts.ts";
import { chainFault } from "#kit/provenance/index.ts";
import type { Capabilities } from "../upstreams/capabilities.ts";
import { type At, catalogRules } from "../upstreams/catalog-rules.ts";
import { declarationFaults, declaredCallFaults } from "../upstreams/jobs/catalog.ts";
import { type ProtocolName, protocols } from "../upstreams/protocols.ts";
import { type CallableModel, callFaults, callShapeFaults, callsOf } from "./calls.ts";
import type { WorkflowFiles } from "./file.ts";
import { kindRules, type Rule } from "./kind-rules.ts";
import { laneFaults, membersOf, poolOf } from "./lanes.ts";
import { maxWorkflows } from "./limits.ts";
import { messagesFaults } from "./messages-rules.ts";
import type { CatalogFile, CatalogModel, CatalogUpstream } from "./schema.ts";

/** Faults between the parts of a file, beyond their own types. */
export function crossFaults(
  file: CatalogFile,
  workflows: WorkflowFiles,
  nowMs?: number,
): FoundFault[] {
  const ids = new Set<string>();
  const defaults = new Set<CatalogModel["kind"]>();
  const ofUpstreams = Object.entries(file.upstreams).flatMap(([name, upstream]) =>
    whereValid(() => declaredFaults(upstream, ["upstreams", name, "jobs"])),
  );
  const ofModels = eachValid(file.models, (model, index) => {
    const at = (...rest: FaultPath): FaultPath => ["models", index, ...rest];
    return [
      ...modelFaults(file, model, at, { ids, defaults }),
      ...protocolFaults(file, model, at),
      ...ownCallFaults(file, model, at, workflows),
    ];
  });
  const ofCredentials = whereValid(() => credentialsFaults(file.contentCredentials, nowMs));
  return [...ofUpstreams, ...laneFaults(file), ...ofModels, ...ofCredentials];
}

/** Faults of the certificate by which made files are signed. `nowMs` undefined: it may be of any time. */
function credentialsFaults(
  credentials: CatalogFile["contentCredentials"],
  nowMs: number | undefined,
): FoundFault[] {
  if (!credentials) return [];
  const { certificate, keyEnv, keyFile } = credentials;
  const fault = chainFault(certificate, nowMs);
  const hasOneKey = (keyEnv === undefined) !== (keyFile === undefined);
  return [
    ...(fault === undefined
      ? []
      : [{ path: ["contentCredentials", "certificate"], message: fault }]),
    ...(hasOneKey
      ? []
      : [{ path: ["contentCredentials"], message: "must have one of keyEnv and keyFile" }]),
  ];
}

/** Faults of an upstream's declaration. */
function declaredFaults({ jobs, baseUrl = "" }: CatalogUpstream, path: FaultPath): FoundFault[] {
  if (!jobs) return [];
  return declarationFaults(jobs, baseUrl).map((fault) => ({
    path: [...path, ...fault.path],
    message: fault.message,
  }));
}

/** Ids and names that earlier models use. */
interface Taken {
  ids: Set<string>;
  defaults: Set<CatalogModel["kind"]>;
}

/** Each rule runs alone. Where one would need a faulty part, the others still run. */
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
    () => {
      const { deprecatedAt, shutdownDate } = model;
      const message = "must not be before deprecatedAt";
      const isBefore =
        deprecatedAt !== undefined &&
        shutdownDate !== undefined &&
        Date.parse(shutdownDate) < Date.parse(deprecatedAt);
      return isBefore ? [{ path: at("shutdownDate"), message }] : [];
    },
    ...upstreamRules(file, model, at),
    ...kindRules(file, model, at),
  ];
  return rules.flatMap(whereValid);
}

/** Protocols of a model's upstreams, the fallbacks included, each once. */
function protocolsOf(file: CatalogFile, model: CatalogModel): ProtocolName[] {
  const names = [model.upstream, ...model.fallbackUpstreams].flatMap((name) =>
    membersOf(file, name),
  );
  return [...new Set(names.flatMap((name) => file.upstreams[name]?.protocol ?? []))];
}

/** The protocol behind a name: the upstream's, or the one of a pool's members. */
function protocolBehind(file: CatalogFile, name: string): ProtocolName | undefined {
  return file.upstreams[membersOf(file, name)[0] ?? ""]?.protocol;
}

/**
 * Faults where a model offers output that one of its upstreams cannot make. Also those where it sets a value that an upstream does not
 * take.
 */
function protocolFaults(file: CatalogFile, model: CatalogModel, at: At): FoundFault[] {
  return [
    ...whereValid(() => strangeFallbacks(file, model, at)),
    ...whereValid(() => messagesFaults(file, model, at)),
    ...whereValid(() => {
      if (!isCallable(model)) return [];
      return callFaults(model, isCalledByTemplate(protocolsOf(file, model)), at);
    }),
    ...whereValid(() =>
      protocolsOf(file, model).flatMap((name) => [
        ...whereValid(() => referenceFaults(model, name, at)),
        ...whereValid(() => modalityFaults(model, name, at)),
        ...whereValid(() => formatFaults(model, name, at)),
        ...whereValid(() => qualityFaults(model, name, at)),
        ...whereValid(() => maskFaults(model, name, at)),
        ...whereValid(() => catalogRules[name]?.check?.(model, at) ?? []),
      ]),
    ),
  ];
}

/** Is it of a kind that has jobs, and so may have a `call`? */
function isCallable(model: CatalogModel): model is CallableModel {
  return model.kind === "image" || model.kind === "video" || model.kind === "music";
}

/** A call is written for one protocol, and so may the names of voices be. An upstream of another protocol would not understand them. */
function strangeFallbacks(file: CatalogFile, model: CatalogModel, at: At): FoundFault[] {
  const first = protocolBehind(file, model.upstream);
  const names = protocolsOf(file, model);
  const whatIsOwn = isCalledByTemplate(names)
    ? "call is"
    : names.some(hasOwnVoices) && model.kind === "speech"
      ? "voices are"
      : undefined;
  if (!first || !whatIsOwn) return [];
  return model.fallbackUpstreams.flatMap((name, index) => {
    const protocol = protocolBehind(file, name);
    if (!protocol || protocol === first) return [];
    const message = `speaks ${protocol}, and the model's ${whatIsOwn} for ${first}`;
    return [{ path: at("fallbackUpstreams", index), message }];
  });
}

/** Is a model of these upstreams called by its key `call`? */
function isCalledByTemplate(names: readonly ProtocolName[]): boolean {
  return names.some((name) => {
    const { callsBy }: Capabilities = protocols[name];
    return callsBy !== undefined;
  });
}

function hasOwnVoices(name: ProtocolName): boolean {
  const { serves }: Capabilities = protocols[name];
  return serves.speech?.ownVoices === true;
}

/** Faults of the model's calls under the protocol that they are for. */
function ownCallFaults(
  file: CatalogFile,
  model: CatalogModel,
  at: At,
  workflows: WorkflowFiles,
): readonly FoundFault[] {
  return whereValid(() => {
    if (!isCallable(model)) return [];
    const calls = callsOf(model);
    return protocolsOf(file, model).flatMap((name) => {
      const { callsBy }: Capabilities = protocols[name];
      if (callsBy === undefined) return [];
      return calls.flatMap(({ path, call }) => {
        const inCall: At = (...rest) => at("call", ...path, ...rest);
        const { input, output = "", workflow } = call;
        const found = workflow === undefined ? undefined : workflows.get(workflow);
        const offered = {
          ...(workflow !== undefined && { workflow: found ?? { fault: notRead } }),
          ...{ input: input as JsonObject, output },
        };
        const outputs = model.kind === "image" ? model.maxImages : 1;
        return [
          ...callShapeFaults(call, callsBy, inCall),
          ...(name !== "jobs" && output === ""
            ? [{ path: inCall("output"), message: "is required" }]
            : []),
          ...declarationsOf(file, model).flatMap((declaration) =>
            declaredCallFaults(declaration, { input: offered.input, output, outputs }, inCall),
          ),
          ...(catalogRules[name]?.checkCall?.(offered, inCall) ?? []),
        ];
      });
    });
  });
}

/** The declarations of a model's upstreams. */
function declarationsOf(file: CatalogFile, model: CatalogModel) {
  return [model.upstream, ...model.fallbackUpstreams].flatMap(
    (name) => file.upstreams[name]?.jobs ?? [],
  );
}

const notRead = `was not read: a catalog has at most ${maxWorkflows} workflows`;

function referenceFaults(model: CatalogModel, name: ProtocolName, at: At): FoundFault[] {
  if (model.kind !== "image" && model.kind !== "video") return [];
  const { serves }: Capabilities = protocols[name];
  const most = serves[model.kind]?.references?.most;
  if (most === undefined || model.maxReferences <= most) return [];
  const article = /^[aeiou]/.test(name) ? "an" : "a";
  const message =
    most === 1
      ? `${article} ${name} upstream takes one reference`
      : `the ${name} upstream takes at most ${most}`;
  return [{ path: at("maxReferences"), message }];
}

/** Faults where a chat model claims a modality that one of its upstreams does not take. */
function modalityFaults(model: CatalogModel, name: ProtocolName, at: At): FoundFault[] {
  if (model.kind !== "chat") return [];
  const { serves }: Capabilities = protocols[name];
  const files = serves.chat?.files;
  if (files === true) return [];
  const strange = model.inputModalities.filter((one) =>
    files === "pdf" ? one === "audio" : one === "pdf" || one === "audio",
  );
  const article = /^[aeiou]/.test(name) ? "an" : "a";
  const taken = files === "pdf" ? "text, images and PDFs" : "text and images";
  const message = `${article} ${name} upstream takes ${taken} alone`;
  return strange.map((one) => ({
    path: at("inputModalities", model.inputModalities.indexOf(one)),
    message,
  }));
}

/** Formats of a speech model that one of its upstreams does not make. */
function formatFaults(model: CatalogModel, name: ProtocolName, at: At): FoundFault[] {
  if (model.kind !== "speech") return [];
  const { serves }: Capabilities = protocols[name];
  const made = serves.speech?.formats;
  if (!made) return [];
  return eachValid(model.formats, (format, index) => {
    const message = `${name} makes ${made.join(", ")} alone`;
    return made.includes(format) ? [] : [{ path: at("formats", index), message }];
  });
}

/** Rows for a quality that one of the upstreams is not told. It would make any quality at that price. */
function qualityFaults(model: CatalogModel, name: ProtocolName, at: At): FoundFault[] {
  if (model.kind !== "image") return [];
  const { serves }: Capabilities = protocols[name];
  if (serves.image?.takesQuality) return [];
  const article = /^[aeiou]/.test(name) ? "an" : "a";
  const message = `${article} ${name} upstream takes no quality`;
  return eachValid(model.imageOptions, ({ quality }, index) =>
    quality === undefined ? [] : [{ path: at("imageOptions", index, "quality"), message }],
  );
}

/** A mask that one of the upstreams is not told, or that belongs to no image. */
function maskFaults(model: CatalogModel, name: ProtocolName, at: At): FoundFault[] {
  if (model.kind !== "image" || !model.masks) return [];
  const { serves }: Capabilities = protocols[name];
  if (model.maxReferences === 0) {
    return [{ path: at("masks"), message: "needs maxReferences of at least 1" }];
  }
  if (serves.image?.takesMask) return [];
  const article = /^[aeiou]/.test(name) ? "an" : "a";
  return [{ path: at("masks"), message: `${article} ${name} upstream takes no mask` }];
}

function upstreamRules(file: CatalogFile, model: CatalogModel, at: At): Rule[] {
  const taken = new Set<string>();
  const faultOf = (name: string, path: FaultPath): FoundFault[] => {
    const members = membersOf(file, name);
    const isKnown = poolOf(file, name) ?? Object.hasOwn(file.upstreams, name);
    if (!isKnown) return [{ path, message: "names no entry of upstreams or pools" }];
    if (members.some((one) => taken.has(one))) {
      return [{ path, message: "is one of the model's upstreams already" }];
    }
    for (const one of members) taken.add(one);
    const protocol = protocolBehind(file, name);
    if (protocol && !(model.kind in protocols[protocol].serves)) {
      return [{ path, message: `a ${protocol} upstream serves no ${model.kind} models` }];
    }
    return isNamedThere(file, model, name)
      ? [{ path, message: `${model.kind} models take no pool with upstreamModels` }]
      : [];
  };
  return [
    () => faultOf(model.upstream, at("upstream")),
    () =>
      eachValid(model.fallbackUpstreams, (name, index) =>
        faultOf(name, at("fallbackUpstreams", index)),
      ),
  ];
}

/** Has a pool names of its own for a model whose requests are not text, and which so has one name alone? */
function isNamedThere(file: CatalogFile, { kind }: CatalogModel, name: string): boolean {
  const isText = kind === "chat" || kind === "embedding" || kind === "transcription";
  return !isText && Object.keys(poolOf(file, name)?.upstreamModels ?? {}).length > 0;
}
