// Computes what typical requests of each model would be held and charged, for `genmesh catalog check --example`. Services' own
// code computes the prices.

import { viewOf } from "#common/agreements/catalog-client.ts";
import type { Model, Snapshot } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { BodyForm } from "#proto/genmesh/media/v1/media_service_pb.ts";
import { jobExamples } from "../media/requests/examples.ts";
import { prepareSpeech } from "../media/speech/request.ts";
import { textExamples } from "../text/metering/examples.ts";

/** The cost of a request of a model, by the code that charges. */
export interface PriceExample {
  model: string;
  /** In words. */
  request: string;
  unit: "usd_micros" | "credits";
  /** The hold of a request whose bounds are just what it uses. */
  hold: bigint;
  charge: bigint;
  /** USD micros that the operator pays, by the catalog. Undefined: unknown. */
  upstreamCost?: bigint | undefined;
}

const scriptLength = 1_000;

/** Examples for the active models of a catalog, in its order. */
export function priceExamples(snapshot: Snapshot): PriceExample[] {
  const view = viewOf(snapshot);
  return snapshot.models
    .filter(({ active }) => active)
    .flatMap((model): PriceExample[] => [
      ...textExamples(model).map(({ request, hold, charge, upstreamCost }) => ({
        ...{ model: model.id, request, unit: "usd_micros" as const, hold, charge, upstreamCost },
      })),
      ...jobExamples(model).map(({ request, credits }) => ({
        ...{ model: model.id, request, unit: "credits" as const, hold: credits, charge: credits },
      })),
      ...speechExamples(model, view),
    ]);
}

function speechExamples(model: Model, view: ReturnType<typeof viewOf>): PriceExample[] {
  if (model.spec.case !== "speech") return [];
  const [voice = ""] = model.spec.value.voices;
  const body = { model: model.id, voice, input: "a".repeat(scriptLength) };
  const form = { form: BodyForm.UNSPECIFIED, hears: false };
  const { amount, characters } = prepareSpeech(body, undefined, view, form);
  const request = `a speech of ${characters.toLocaleString("en-US")} characters`;
  return [{ model: model.id, request, unit: "usd_micros", hold: amount, charge: amount }];
}
