import type { JsonObject } from "#kit/base/json.ts";
import type { FaultPath, FoundFault } from "#kit/base/valid-parts.ts";
import { builtinFaults } from "./builtin/catalog.ts";
import type { ServedKind } from "./capabilities.ts";
import { comfyCallFaults } from "./comfyui/catalog.ts";
import { falFaults } from "./fal/catalog.ts";
import type { ProtocolName } from "./protocols.ts";
import { replicateCallFaults, replicateFaults } from "./replicate/catalog.ts";

/** A model of a catalog file, as far as protocols judge it: what its kind does not have is absent. */
export interface OfferedModel {
  kind: ServedKind;
  maxReferences?: number;
  /** "1024x1024". */
  sizes?: readonly string[];
  resolutions?: readonly string[];
  availableAspectRatios?: readonly string[];
  firstLastFrame?: boolean;
  videoOptions?: readonly {
    durationSeconds: number;
    resolution: string;
    modes: readonly ("t2v" | "i2v")[];
    active: boolean;
  }[];
  voices?: readonly string[];
  /** As catalog/calls.ts has it. */
  call?: unknown;
}

/** A call of a model, as far as protocols judge it. */
export interface OfferedCall {
  /** What was found in the file that it names as `workflow`; absent where it names none. */
  workflow?: { text: string; fault?: never } | { text?: never; fault: string };
  input: JsonObject;
  output: string;
}

/** A path in the model or the call that is judged. */
export type At = (...rest: FaultPath) => FaultPath;

/** What a protocol asks of the models that it serves, when a catalog is loaded. */
export interface ProtocolRules {
  /**
   * What a model offers that the upstream cannot make, or what its `call` gets wrong: more would be a job that can only fail. Reading
   * a part of a model that is at fault itself throws; ask rules that read several by `eachValid` and `whereValid`.
   */
  check?(model: OfferedModel, at: At): FoundFault[];
  /** What one of its calls gets wrong that only this protocol knows of. */
  checkCall?(call: OfferedCall, at: At): FoundFault[];
}

/** The rules that protocols have beside what their rows in protocols.ts say. */
export const catalogRules: Readonly<Partial<Record<ProtocolName, ProtocolRules>>> = {
  builtin: { check: builtinFaults },
  fal: { check: falFaults },
  replicate: { check: replicateFaults, checkCall: replicateCallFaults },
  comfyui: { checkCall: comfyCallFaults },
};
