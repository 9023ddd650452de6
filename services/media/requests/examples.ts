// Computes the prices of typical jobs of a model, for `genmesh catalog check --example`.

import { type Model, VideoMode } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { ReferenceInput } from "../references/port.ts";
import { readImage } from "./image.ts";
import type { PricedRequest } from "./index.ts";
import { readMusic } from "./music.ts";
import { readVideo } from "./video.ts";

/** A job of a model, with its price by the code that accepts jobs. */
export interface JobExample {
  /** In words, such as "an image of quality high, 1024x1024". */
  request: string;
  credits: bigint;
}

const prompt = "a lighthouse";
const reference: ReferenceInput = { kind: "url", url: "https://example.com/a.png", param: "image" };

/** Jobs of a model of images, videos or music: one for each row of its prices. Empty for other kinds. */
export function jobExamples(model: Model): JobExample[] {
  // Several rows may fit the same job. Its price is that of the first one.
  const found = new Map(allExamples(model).map((one) => [one.request, one]));
  return [...found.values()];
}

function allExamples(model: Model): JobExample[] {
  const { spec } = model;
  switch (spec.case) {
    case "image": {
      const { options } = spec.value;
      const image = (words: string, body: object) =>
        priced(words, readImage({ prompt, ...body }, [], spec.value));
      const rows = options
        .filter(({ size }) => size === "" || spec.value.sizes.includes(size))
        .map(({ quality, size }) => {
          const words = [quality && `of quality ${quality}`, size].filter(Boolean).join(", ");
          return image(`an image ${words}`, {
            ...(quality && { quality }),
            ...(size && { size }),
          });
        });
      const open = options.length === 0 ? "an image" : "an image, quality and size left open";
      return [image(open, {}), ...rows];
    }
    case "video":
      return spec.value.options
        .filter(({ active }) => active)
        .map(({ durationSeconds, resolution, modes }) => {
          const isOfText = modes.includes(VideoMode.T2V);
          const body = { prompt, seconds: durationSeconds, resolution };
          const references = isOfText ? [] : [reference];
          const words = `${durationSeconds} s, ${resolution}${isOfText ? "" : ", from an image"}`;
          return priced(words, readVideo(body, references, model, spec.value));
        });
    case "music":
      return [
        priced("a piece of music", readMusic({ mode: "instrumental", title: prompt }, spec.value)),
      ];
    default:
      return [];
  }
}

function priced(request: string, { price: credits }: PricedRequest): JobExample {
  return { request, credits };
}
