import type { CatalogView } from "#kit/catalog-client.ts";
import { ErrorReason, isRefusal, refuse } from "#kit/errors.ts";
import type { JsonObject } from "#kit/json.ts";
import { ModelKind } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { Admission } from "#proto/genmesh/common/v1/access_pb.ts";
import type { GenerationRequest } from "../generate/port.ts";
import type { JobSpec, MediaKind } from "../jobs/job.ts";
import type { ReferenceInput } from "../references/port.ts";
import { readModelId, type Spelled } from "./fields.ts";
import { readImage } from "./image.ts";
import { readMusic } from "./music.ts";
import { readReferences, toStoredReference } from "./references.ts";
import { readVideo } from "./video.ts";

export { readReferences } from "./references.ts";

/** A body that its model offers, with every default filled in, and its price in credits. */
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

/** What a job's body says, checked against one snapshot: everything before a credit is touched. */
export interface CheckedRequest {
  spec: JobSpec;
  /** With their bytes, for the import. */
  references: readonly ReferenceInput[];
}

/** What the edge knows of a request. */
export interface RequestEdge {
  admission?: Admission | undefined;
  /** What our own URLs begin with; empty or absent: nobody knows. */
  publicBaseUrl?: string;
}

/** Validates and prices a body. Refuses with the public code and the path of the field at fault. */
export function checkRequest(
  kind: MediaKind,
  body: JsonObject,
  view: CatalogView,
  { admission, publicBaseUrl }: RequestEdge,
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
  const references = kind === "music" ? [] : readReferences(body, publicBaseUrl);
  const priced = readPriced(body, references, model);
  const upstreams = view.upstreamsOf(model);
  return {
    references,
    spec: {
      kind,
      model: model.id,
      modelName: model.name,
      mode: priced.mode,
      catalogVersion: view.snapshot.version,
      request: priced.request,
      references: references.map(toStoredReference),
      upstreamModel: model.upstreamModel,
      upstreams,
      price: priced.price,
    },
  };
}

/** A refusal names the spelling that was used. */
function findModel({ value, param }: Spelled<string>, kind: MediaKind, view: CatalogView) {
  try {
    return view.findModel(value, modelKinds[kind]);
  } catch (error) {
    if (!isRefusal(error) || error.param === param) throw error;
    return refuse(error.reason, { param, metadata: error.metadata });
  }
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
