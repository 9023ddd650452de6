// Decides whether a model takes the optional fields of a job's request, the seed and the negative prompt. The edge lists them,
// and the media service refuses others.

import type { JsonValue } from "#kit/base/json.ts";
import { partsOf } from "#kit/template/template.ts";
import {
  type Model,
  type ModelCall,
  type Snapshot,
  VideoMode,
} from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { Capabilities, OptionalField } from "./capabilities.ts";
import { capabilitiesOf } from "./protocols.ts";

/** The part of a request that decides which call of its model it uses. */
export interface AskedShape {
  kind: "image" | "video" | "music";
  /** For a video: "t2v" or "i2v". */
  mode?: string;
  /** For a video: is its second reference the last frame? */
  firstLastFrame?: boolean;
}

/** Does an upstream take a field of this request? Its protocol's row decides, or the model's call where the row leaves that open. */
export function isTaken(
  name: OptionalField,
  request: AskedShape,
  calls: readonly Pick<ModelCall, "mode" | "input">[],
  abilities: Pick<Capabilities, "callsBy" | "serves"> | undefined,
): boolean {
  if (abilities?.callsBy === undefined) {
    return abilities?.serves[request.kind]?.takes?.includes(name) ?? false;
  }
  const mode = request.kind === "video" ? request.mode : "";
  const used = calls.filter(
    (call) =>
      call.mode === mode ||
      call.mode === "" ||
      (call.mode === "references" && mode === "i2v") ||
      (call.mode === "firstLast" && request.kind === "video" && request.firstLastFrame),
  );
  return used.length > 0 && used.every(({ input }) => isPlaced(name, input));
}

function isPlaced(name: OptionalField, input: string): boolean {
  return partsOf(JSON.parse(input) as JsonValue).some((part) => {
    if (part.kind === "placeholder") return part.placeholder.name === name;
    return part.kind === "map" && part.of.name === name;
  });
}

/** Fields that a model takes in each of its modes. Any of its upstreams may get the job, so all of them must take the field. */
export function fieldsTaken(
  model: Model,
  { upstreams }: Pick<Snapshot, "upstreams">,
): OptionalField[] {
  const shapes = shapesOf(model);
  const all = [model.upstream, ...model.fallbackUpstreams].map((name) => upstreams[name]);
  const isKnown = (field: OptionalField, shape: AskedShape) =>
    all.every((one) => one && isTaken(field, shape, model.calls, capabilitiesOf(one.protocol)));
  return (["negativePrompt", "seed"] as const).filter(
    (field) => shapes.length > 0 && shapes.every((shape) => isKnown(field, shape)),
  );
}

function shapesOf({ spec }: Model): AskedShape[] {
  if (spec.case === "image" || spec.case === "music") return [{ kind: spec.case }];
  if (spec.case !== "video") return [];
  const { options, firstLastFrame } = spec.value;
  const modes = new Set(options.filter((row) => row.active).flatMap((row) => row.modes));
  return [
    ...(modes.has(VideoMode.T2V) ? [{ kind: "video", mode: "t2v" } as const] : []),
    ...(modes.has(VideoMode.I2V) ? [{ kind: "video", mode: "i2v", firstLastFrame } as const] : []),
  ];
}
