// The part of the catalog's schema that says how a model is called by a template, and the faults of such calls. Other keys of
// models are in `schema.ts`.

import { z } from "zod";
import { musicModes } from "#common/words/request-bounds.ts";
import type { JsonValue } from "#kit/base/json.ts";
import { type FaultPath, type FoundFault, whereValid } from "#kit/base/valid-parts.ts";
import { chosenInVain, type Offer, templateFaults } from "#kit/template/check.ts";
import { parseOutputPath } from "#kit/template/output-path.ts";
import { partsOf } from "#kit/template/template.ts";
import { maxNameCharacters, maxTextCharacters } from "./limits.ts";
import type { CatalogModelOf } from "./schema.ts";

const notAPath = "must be a path like images[*].url";
const outputPath = z
  .string()
  .max(maxTextCharacters)
  .refine((text) => parseOutputPath(text) !== undefined, notAPath);

/** A file in the catalog's folder or below it, and nowhere else. */
export const workflowName = z
  .string()
  .max(maxNameCharacters)
  .regex(
    /^\w[\w.-]*(\/\w[\w.-]*)*\.json$/,
    "must be a .json file beside the catalog, its name of letters, digits, '.', '_', '-' and '/'",
  );

/**
 * How an upstream's model is called: its name there, its input as a template, and the place of its outputs in an answer. For a
 * workflow: its file, the values for its inputs, and the node that makes the outputs.
 */
const callKeys = {
  model: z
    .string()
    .max(maxNameCharacters)
    .regex(/^[\w.-]+(\/[\w.-]+)*(:[\w.-]+)?$/, "must be a model's name like owner/name")
    .optional(),
  workflow: workflowName.optional(),
  input: z.record(z.string(), z.json()),
  /** Absent where the upstream answers with the file itself. */
  output: z.string().min(1).max(maxTextCharacters).optional(),
  /** The place in an answer that states which outputs were refused for their content, as booleans. */
  refused: outputPath.optional(),
};
export const callSchema = z.strictObject(callKeys).superRefine(checkOutput);

function checkOutput(
  { workflow, output }: { workflow?: string | undefined; output?: string | undefined },
  { addIssue }: z.RefinementCtx,
): void {
  const isNode = workflow !== undefined || output === undefined;
  if (isNode || outputPath.safeParse(output).success) return;
  addIssue({ code: "custom", path: ["output"], message: notAPath });
}

/** Modes of a video that may have a call of their own. */
const videoModes = ["t2v", "i2v", "firstLast", "references"] as const;

/**
 * The calls of a video model: from text, from a reference, from a first and a last frame, from several references. Or one call for all
 * of them.
 */
export const videoCallSchema = z
  .strictObject({
    ...callKeys,
    input: callKeys.input.optional(),
    t2v: callSchema.optional(),
    i2v: callSchema.optional(),
    firstLast: callSchema.optional(),
    references: callSchema.optional(),
  })
  .superRefine((call, context) => {
    checkOutput(call, context);
    const ofModes = videoModes.filter((mode) => call[mode] !== undefined);
    const isOne = (["model", "workflow", "input", "output"] as const).some(
      (key) => call[key] !== undefined,
    );
    for (const mode of isOne ? ofModes : []) {
      context.addIssue({ code: "custom", path: [mode], message: "is beside a call for all modes" });
    }
    if (isOne && call.input === undefined) {
      context.addIssue({ code: "custom", path: ["input"], message: "is required" });
    }
  });

/** A call of a catalog file. */
export type CatalogCall = z.output<typeof callSchema>;

/** A model that may be called by a template. */
export type CallableModel = CatalogModelOf<"image" | "video" | "music">;

type CallableVideo = CatalogModelOf<"video">;

/** The modes of a video's calls. "" is a model's only call. */
export type CallMode = "" | (typeof videoModes)[number];

/** A model's calls by their mode, each with its place below `call`. */
export function callsOf(
  model: CallableModel,
): { mode: CallMode; path: FaultPath; call: CatalogCall }[] {
  if (model.call === undefined) return [];
  if (model.kind !== "video") return [{ mode: "", path: [], call: model.call }];
  const { t2v, i2v, firstLast, references, input, ...rest } = model.call;
  if (input !== undefined) return [{ mode: "", path: [], call: { ...rest, input } }];
  const ofModes = { t2v, i2v, firstLast, references };
  return videoModes.flatMap((mode) => {
    const one = ofModes[mode];
    return one ? [{ mode, path: [mode], call: one }] : [];
  });
}

/** Faults where a model's calls lack something that the model offers. `isNeeded`: its upstreams can be called by a template only. */
export function callFaults(
  model: CallableModel,
  isNeeded: boolean,
  at: (...rest: FaultPath) => FaultPath,
): FoundFault[] {
  if (model.call === undefined) {
    return isNeeded ? [{ path: at("call"), message: "is required by its upstream" }] : [];
  }
  if (!isNeeded) {
    return [{ path: at("call"), message: "is for upstreams that are called by a template" }];
  }
  const calls = callsOf(model);
  const missing = modesNeeded(model, calls)
    .filter((mode) => !calls.some((call) => call.mode === mode))
    .map((mode) => ({ path: at("call"), message: `has no ${mode}, which the model offers` }));
  const isVain = model.kind === "video" && model.call?.references && model.maxReferences < 2;
  const vain = isVain
    ? [{ path: at("call", "references"), message: "needs maxReferences of at least 2" }]
    : [];
  const inside = calls.flatMap(({ mode, path, call }) =>
    whereValid(() =>
      templateFaults(call.input as JsonValue, offerOf(model, mode)).map((fault) => ({
        path: at("call", ...path, "input", ...fault.path),
        message: fault.message,
      })),
    ),
  );
  return [...missing, ...vain, ...inside];
}

/** A call names a model or a workflow, as its upstreams require. */
export function callShapeFaults(
  { model, workflow, refused }: CatalogCall,
  callsBy: "template" | "workflow",
  at: (...rest: FaultPath) => FaultPath,
): FoundFault[] {
  const isWorkflow = callsBy === "workflow";
  const [needed, strange] = isWorkflow ? ["workflow", "model"] : ["model", "workflow"];
  const missing = (isWorkflow ? workflow : model) === undefined;
  const extra = (isWorkflow ? model : workflow) !== undefined;
  return [
    ...(missing ? [{ path: at(needed), message: "is required by its upstream" }] : []),
    ...(extra ? [{ path: at(strange), message: "is for upstreams of another protocol" }] : []),
    ...(isWorkflow && refused !== undefined
      ? [{ path: at("refused"), message: "is for upstreams of another protocol" }]
      : []),
  ];
}

/** The call from a reference also serves a first and a last frame, where it places both. */
function modesNeeded(
  model: CallableModel,
  calls: readonly { mode: CallMode; call: CatalogCall }[],
): CallMode[] {
  if (model.kind !== "video" || calls.some(({ mode }) => mode === "")) return [];
  const modes = model.videoOptions.flatMap((row) => (row.active ? row.modes : []));
  const fromReference = calls.find(({ mode }) => mode === "i2v");
  const placesLast =
    fromReference !== undefined &&
    partsOf(fromReference.call.input as JsonValue).some(
      (part) =>
        part.kind === "placeholder" &&
        part.placeholder.name === "references" &&
        part.placeholder.index !== 0,
    );
  const needsLast = model.firstLastFrame && !placesLast;
  return [...new Set<CallMode>([...modes, ...(needsLast ? (["firstLast"] as const) : [])])];
}

/** The values that the generations of a mode offer to the input of their call. */
function offerOf(model: CallableModel, mode: CallMode): Offer {
  const everyKind = { seed: "any", negativePrompt: "any", model: "any", job: "any" } as const;
  switch (model.kind) {
    case "image": {
      const several = model.maxImages > 1;
      return {
        values: valuesOf({
          ...everyKind,
          prompt: "any",
          count: texts(Array.from({ length: model.maxImages }, (_, i) => i + 1)),
          width: "any",
          height: "any",
          ...(model.sizes.length > 0 && { size: model.sizes }),
          ...(model.resolutions.length > 0 && { resolution: model.resolutions }),
          aspectRatio: ratiosOf(model),
          ...(model.masks && { mask: "any" as const }),
        }),
        maxReferences: model.maxReferences,
        mustPlace: new Map([
          ["prompt", chosenInVain],
          ...(model.masks ? [["mask", chosenInVain] as const] : []),
          ...(several ? [["count", "maxImages allows several"] as const] : []),
        ]),
      };
    }
    case "video": {
      const ofMode = mode === "t2v" ? "t2v" : "i2v";
      const rows = model.videoOptions.filter(
        (row) => row.active && (mode === "" || row.modes.includes(ofMode)),
      );
      const seconds = texts([...new Set(rows.map((row) => row.durationSeconds))]);
      const resolutions = [...new Set(rows.map((row) => row.resolution))];
      return {
        values: valuesOf({
          ...everyKind,
          prompt: "any",
          seconds,
          resolution: resolutions,
          aspectRatio: ratiosOf(model),
          width: "any",
          height: "any",
          audio: [String(model.nativeAudio !== "none")],
        }),
        maxReferences: referencesOf(model, mode),
        mustPlace: new Map([
          ["prompt", chosenInVain],
          ...(seconds.length > 1 ? [["seconds", "its rows have several"] as const] : []),
          ...(resolutions.length > 1 ? [["resolution", "its rows have several"] as const] : []),
        ]),
      };
    }
    case "music":
      return {
        values: valuesOf({
          ...everyKind,
          title: "any",
          description: "any",
          lyrics: "any",
          musicMode: musicModes,
        }),
        maxReferences: 0,
        mustPlace: new Map([
          ["description", chosenInVain],
          ["lyrics", chosenInVain],
        ]),
      };
  }
}

/** Callers may always leave the ratio open. */
function ratiosOf({ availableAspectRatios: ratios }: Pick<CallableVideo, "availableAspectRatios">) {
  return [...new Set(["auto", ...ratios])];
}

/** References that the call of a mode gets. A first and a last frame use their own call, where there is one. */
function referencesOf({ maxReferences, firstLastFrame, call }: CallableVideo, mode: CallMode) {
  if (mode === "t2v") return 0;
  const hasOwn = call?.references ?? (firstLastFrame ? call?.firstLast : undefined);
  return mode === "i2v" && hasOwn ? 1 : maxReferences;
}

function valuesOf(values: Record<string, readonly string[] | "any">): Offer["values"] {
  return new Map(Object.entries(values));
}

function texts(numbers: readonly number[]): string[] {
  return numbers.map(String);
}
