// The row of OpenAI's API in `../protocols.ts`: what it can do, and which keys the catalog may give it.

import { soundFormats } from "#kit/sound/formats.ts";
import { UpstreamProtocol } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { type Capabilities, jobKeys, remoteKeys } from "../capabilities.ts";

/** OpenAI's API. */
export const openai = {
  wire: UpstreamProtocol.OPENAI,
  keys: [...remoteKeys, ...jobKeys, "inlineImages", "outputLimit"],
  serves: {
    chat: { responses: true, chat: "translated", files: true },
    // The images come with the answer, so there is no task to resume.
    image: {
      submit: "once",
      resume: false,
      cancel: false,
      progress: "outputs",
      references: { sent: "form" },
      takesQuality: true,
      takesMask: true,
    },
    // Its one reference is the first frame.
    video: {
      submit: "once",
      resume: true,
      cancel: false,
      progress: "percent",
      references: { sent: "form", most: 1 },
    },
    speech: { submit: "once", formats: soundFormats },
    embedding: true,
    transcription: true,
  },
} as const satisfies Capabilities;
