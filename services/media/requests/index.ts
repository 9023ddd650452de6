// Checks and prices the body of a job of any kind, and collects all that a worker needs later. `jobs/submit.ts` calls it before
// anything is held. Each kind has a file of its own.

import type { CatalogView } from "#common/agreements/catalog-client.ts";
import { optionalOutsideUrl } from "#common/words/outside-url.ts";
import { maxWebhookUrlLength } from "#common/words/request-bounds.ts";
import { ErrorReason, isRefusal, refuse } from "#kit/base/errors.ts";
import type { JsonObject } from "#kit/base/json.ts";
import {
  LostAnswer,
  type ModelCall,
  ModelKind,
  type Upstream,
} from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { Admission } from "#proto/genmesh/common/v1/access_pb.ts";
import { BodyForm } from "#proto/genmesh/media/v1/media_service_pb.ts";
import type { GenerationRequest } from "../../upstreams/media/port.ts";
import { spread } from "../../upstreams/pools/choice.ts";
import type { Job, JobSpec, MediaKind } from "../jobs/job.ts";
import type { ReferenceInput } from "../references/port.ts";
import { readModelId, type Spelled } from "./fields.ts";
import { qualitiesOf, readImage } from "./image.ts";
import { readMusic } from "./music.ts";
import { checkOpenAiImage } from "./openai-image.ts";
import { checkCount, checkExtras, readExtras, readMetadata } from "./optional-fields.ts";
import { readInputs, toStoredReference } from "./references.ts";
import { readVideo } from "./video.ts";

export { bodyFormOf, readImageAnswer } from "./openai-image.ts";
export { readInputs } from "./references.ts";

/** A body that its model can serve, with every default filled in, and its price in credits. */
export interface PricedRequest {
  mode: string;
  price: bigint;
  request: GenerationRequest;
}

const modelKinds = {
  image: ModelKind.IMAGE,
  video: ModelKind.VIDEO,
  music: ModelKind.MUSIC,
} as const satisfies Record<MediaKind, ModelKind>;

/** The content of a job's body, checked against one snapshot. All of this happens before a credit is touched. */
export interface CheckedRequest {
  spec: JobSpec;
  /** With their bytes, for the import. */
  references: readonly ReferenceInput[];
  /** The address for the job's end. Undefined: none. */
  webhookUrl: string | undefined;
}

/** The edge's facts about a request. */
interface RequestEdge {
  admission?: Admission | undefined;
  /** The beginning of our own URLs. Empty or absent: unknown. */
  publicBaseUrl?: string;
  /** Default: the form of the API's own document. */
  form?: BodyForm;
}

/** Validates and prices a body. Refuses with the public code and the path of the faulty field. */
export function checkRequest(
  kind: MediaKind,
  body: JsonObject,
  view: CatalogView,
  { admission, publicBaseUrl, form = BodyForm.UNSPECIFIED }: RequestEdge,
): CheckedRequest {
  const id = readModelId(body, kind === "video" ? ["model", "modelId"] : ["model"]);
  const model = findModel(id, kind, view);
  const allowed = admission?.allowedModels ?? [];
  if (allowed.length > 0 && !allowed.includes(model.id)) {
    refuse(ErrorReason.PERMISSION_DENIED, {
      param: id.param,
      message: "The API key may not use this model.",
    });
  }
  if (form !== BodyForm.UNSPECIFIED) {
    const { spec } = model;
    checkOpenAiImage(body, spec.case === "image" && qualitiesOf(spec.value).length > 0);
  }
  if (kind === "image" && !takesMask(model) && (body.mask ?? null) !== null) {
    refuse(ErrorReason.UNSUPPORTED_PARAMETER, { param: "mask" });
  }
  const references = readInputs(kind, body, publicBaseUrl, form);
  const priced = readPriced(body, references, model);
  const upstreams = upstreamsOf(model, view);
  const request = { ...priced.request, ...readExtras(body) };
  checkExtras(request, model, upstreams);
  if (kind !== "image") checkCount(body, model);
  const metadata = readMetadata(body);
  const call = callFor(priced.request, references.length, model.calls);
  const named = optionalOutsideUrl(body, "webhookUrl", maxWebhookUrlLength);
  const webhookUrl = named ?? (admission?.webhookUrl || undefined);
  return {
    references,
    webhookUrl,
    spec: {
      kind,
      model: model.id,
      modelName: model.name,
      mode: priced.mode,
      catalogVersion: view.snapshot.version,
      request,
      references: references.map(toStoredReference),
      upstreamModel: model.upstreamModel,
      ...(call && { call }),
      upstreams,
      price: priced.price,
      ...(metadata ? { metadata } : {}),
    },
  };
}

/** A model's upstreams, in the order in which they are tried, with the model's own settings in place of the upstreams'. */
function upstreamsOf(model: FoundModel, view: CatalogView): readonly Upstream[] {
  const upstreams = spread(view.upstreamsOf(model), model);
  const { lostAnswer } = model;
  if (lostAnswer === LostAnswer.UNSPECIFIED) return upstreams;
  return upstreams.map((upstream) => ({ ...upstream, lostAnswer }));
}

/** The call for the request's mode. A first and a last frame, and several references, may have a separate one. */
function callFor(
  request: GenerationRequest,
  references: number,
  calls: readonly ModelCall[],
): ModelCall | undefined {
  const modes =
    request.kind !== "video"
      ? [""]
      : request.firstLastFrame
        ? ["firstLast", "i2v", ""]
        : references > 1
          ? ["references", request.mode, ""]
          : [request.mode, ""];
  return modes.flatMap((mode) => calls.filter((call) => call.mode === mode))[0];
}

/** A refusal names the spelling that the caller used. */
function findModel({ value, param }: Spelled<string>, kind: MediaKind, view: CatalogView) {
  try {
    return view.findModel(value, modelKinds[kind]);
  } catch (error) {
    if (!isRefusal(error) || error.param === param) throw error;
    return refuse(error.reason, { param, metadata: error.metadata });
  }
}

function takesMask({ spec }: FoundModel): boolean {
  return spec.case === "image" && spec.value.masks;
}

type FoundModel = ReturnType<CatalogView["findModel"]>;

function readPriced(
  body: JsonObject,
  references: readonly ReferenceInput[],
  model: FoundModel,
): PricedRequest {
  const { spec } = model;
  switch (spec.case) {
    case "image":
      return readImage(body, references, spec.value);
    case "video":
      return readVideo(body, references, model, spec.value);
    case "music":
      return readMusic(body, spec.value);
    default:
      throw new TypeError("a model of another kind than it says");
  }
}

/**
 * A body that requests the same as a job. Values that its caller left open stay those that were chosen then. Its references are the
 * files of their import.
 */
export function bodyOf(job: Pick<Job, "spec" | "pinned" | "webhook">): JsonObject {
  return { ...bodyOfSpec(job), webhookUrl: job.webhook?.url ?? null };
}

function bodyOfSpec({ spec, pinned }: Pick<Job, "spec" | "pinned">): JsonObject {
  const { request, model } = spec;
  const files = (pinned ?? []).map(({ fileId }) => fileId);
  const mask = request.kind === "image" && request.hasMask ? files.pop() : undefined;
  const references: JsonObject = files.length > 0 ? { referenceFileIds: files } : {};
  const common: JsonObject = {
    model,
    negativePrompt: request.negativePrompt ?? null,
    seed: request.seed ?? null,
    metadata: spec.metadata ? Object.fromEntries(spec.metadata) : null,
  };
  switch (request.kind) {
    case "image":
      return {
        ...common,
        prompt: request.prompt,
        n: request.count,
        size: request.size ?? null,
        resolution: request.resolution ?? null,
        aspectRatio: request.aspectRatio ?? null,
        ...(request.quality && { quality: request.quality }),
        ...(mask !== undefined && { mask: { file_id: mask } }),
        ...references,
      };
    case "video":
      return {
        ...common,
        prompt: request.prompt,
        seconds: request.durationSeconds,
        resolution: request.resolution,
        aspectRatio: request.aspectRatio,
        ...references,
      };
    case "music":
      return {
        ...common,
        mode: request.mode,
        title: request.title,
        description: request.description ?? null,
        lyrics: request.lyrics ?? null,
      };
  }
}
