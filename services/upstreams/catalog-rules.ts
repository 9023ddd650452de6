// The rules that some protocols have for models in a catalog, beside the rows of `protocols.ts`. The catalog runs them when it is
// read.

import type { JsonObject } from "#kit/base/json.ts";
import type { FaultPath, FoundFault } from "#kit/base/valid-parts.ts";
import { builtinFaults } from "./builtin/catalog.ts";
import type { ServedKind } from "./capabilities.ts";
import { comfyCallFaults } from "./comfyui/catalog.ts";
import { falFaults } from "./fal/catalog.ts";
import type { ProtocolName } from "./protocols.ts";
import { replicateCallFaults, replicateFaults } from "./replicate/catalog.ts";

/** The part of a catalog file's model that protocols judge. Keys that its kind lacks are absent. */
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
  /** In the form of catalog/calls.ts. */
  call?: unknown;
}

/** The part of a model's call that protocols judge. */
export interface OfferedCall {
  /** The content of the file that it names as `workflow`. Absent where it names none. */
  workflow?: { text: string; fault?: never } | { text?: never; fault: string };
  input: JsonObject;
  output: string;
}

/** A path in the model or the call that is judged. */
export type At = (...rest: FaultPath) => FaultPath;

/** A protocol's rules for the models that it serves, when a catalog is loaded. */
export interface ProtocolRules {
  /**
   * Faults where a model offers output that the upstream cannot make, or where its `call` is wrong. Such a job could only fail. Reading
   * a faulty part of a model throws. Run rules that read several by `eachValid` and `whereValid`.
   */
  check?(model: OfferedModel, at: At): FoundFault[];
  /** Faults of one of its calls that only this protocol knows. */
  checkCall?(call: OfferedCall, at: At): FoundFault[];
}

/** The rules that protocols have beside their rows in protocols.ts. */
export const catalogRules: Readonly<Partial<Record<ProtocolName, ProtocolRules>>> = {
  builtin: { check: builtinFaults },
  fal: { check: falFaults },
  replicate: { check: replicateFaults, checkCall: replicateCallFaults },
  comfyui: { checkCall: comfyCallFaults },
};
