// Checks the body of a video job against the rows that its model offers, and prices it.

import { optionalString } from "#common/words/body.ts";
import { videoSizes } from "#common/words/request-bounds.ts";
import { ErrorReason, type Reason, refuse } from "#kit/base/errors.ts";
import type { JsonObject } from "#kit/base/json.ts";
import {
  type Model,
  NativeAudio,
  VideoMode,
  type VideoOption,
  type VideoSpec,
} from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { ReferenceInput } from "../references/port.ts";
import { autoRatio, checkRatio, closestRatio, readInteger, readPrompt } from "./fields.ts";
import type { PricedRequest } from "./index.ts";
import { checkReferenceCount, fieldOf } from "./references.ts";

const modeNames = { [VideoMode.T2V]: "t2v", [VideoMode.I2V]: "i2v" } as const;
type Mode = keyof typeof modeNames;

/** A caller's values for the shape, each where it was sent. */
interface Shape {
  resolution: { value: string; param: string } | undefined;
  aspectRatio: string;
}

/**
 * Checks a video's body against its model, in the order mode, duration, resolution, ratio, references. The first active row that fits
 * gives the price. Types and contradictions of the fields themselves are checked before.
 */
export function readVideo(
  body: JsonObject,
  references: readonly ReferenceInput[],
  model: Model,
  spec: VideoSpec,
): PricedRequest {
  const prompt = readPrompt(body);
  const seconds = readInteger(body, ["seconds", "durationSeconds"]);
  const sent = {
    size: optionalString(body, "size"),
    resolution: optionalString(body, "resolution"),
    aspectRatio: optionalString(body, "aspectRatio"),
  };
  const mode: Mode = references.length === 0 ? VideoMode.T2V : VideoMode.I2V;
  const active = spec.options.filter((row) => row.active);
  const rows = active.filter((row) => row.modes.includes(mode));
  if (rows.length === 0) {
    // The mode has no rows. Those of the other mode show the model's offers.
    unsupported(
      ErrorReason.UNSUPPORTED_MODE,
      mode === VideoMode.T2V ? "model" : fieldOf(references[0]),
      {
        rows: active,
        message: `The model '${model.id}' does not offer ${modeNames[mode]}.`,
      },
    );
  }
  const lasting = seconds ? rows.filter((row) => row.durationSeconds === seconds.value) : rows;
  if (seconds && lasting.length === 0) {
    unsupported(ErrorReason.UNSUPPORTED_DURATION, seconds.param, { rows });
  }
  const { resolution, aspectRatio } = readShape(sent, spec);
  const fitting = resolution
    ? lasting.filter((row) => row.resolution === resolution.value)
    : lasting;
  const row = fitting[0];
  if (!row) unsupported(ErrorReason.UNSUPPORTED_RESOLUTION, resolution?.param ?? "", { rows });
  checkRatio(aspectRatio, spec.aspectRatios);
  checkReferenceCount(references, spec.maxReferences, rows.map(toPublicRow));
  return {
    mode: modeNames[mode],
    price: row.credits,
    request: {
      kind: "video",
      prompt,
      mode: modeNames[mode],
      durationSeconds: row.durationSeconds,
      resolution: row.resolution,
      aspectRatio,
      audio: audioOf(spec),
      firstLastFrame: spec.firstLastFrame && references.length > 1,
    },
  };
}

function readShape(
  sent: {
    size?: string | undefined;
    resolution?: string | undefined;
    aspectRatio?: string | undefined;
  },
  spec: VideoSpec,
): Shape {
  const { size, resolution, aspectRatio } = sent;
  if (size === undefined) {
    return {
      resolution: resolution === undefined ? undefined : { value: resolution, param: "resolution" },
      aspectRatio: aspectRatio ?? autoRatio,
    };
  }
  const alias = Object.hasOwn(videoSizes, size) ? videoSizes[size] : undefined;
  if (!alias) {
    refuse(ErrorReason.UNSUPPORTED_SIZE, {
      param: "size",
      message: `A video's size must be one of: ${Object.keys(videoSizes).join(", ")}.`,
    });
  }
  const closest = closestRatio(alias.width, alias.height, spec.aspectRatios);
  if (resolution !== undefined && resolution !== alias.resolution) contradicts("resolution");
  const isOther = aspectRatio !== undefined && aspectRatio !== autoRatio && aspectRatio !== closest;
  if (isOther) contradicts("aspectRatio");
  return { resolution: { value: alias.resolution, param: "size" }, aspectRatio: closest };
}

function contradicts(param: string): never {
  refuse(ErrorReason.INVALID_VALUE, {
    param,
    message: `The parameters '${param}' and 'size' contradict each other. Send one of them.`,
  });
}

function unsupported(
  reason: Reason,
  param: string,
  { rows, message }: { rows: readonly VideoOption[]; message?: string },
): never {
  refuse(reason, {
    param,
    ...(message === undefined ? {} : { message }),
    metadata: { available_options: JSON.stringify(rows.map(toPublicRow)) },
  });
}

/** In the form of the catalog's `videoOptions`. */
function toPublicRow({ durationSeconds, resolution, modes, credits }: VideoOption) {
  return {
    durationSeconds,
    resolution,
    modes: modes.flatMap((mode) => modeNames[mode as Mode] ?? []),
    credits: Number(credits),
  };
}

function audioOf({ nativeAudio }: VideoSpec): "none" | "mono" | "stereo" {
  if (nativeAudio === NativeAudio.MONO) return "mono";
  return nativeAudio === NativeAudio.STEREO ? "stereo" : "none";
}
