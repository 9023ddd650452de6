// The row of ElevenLabs in `../protocols.ts`: what it can do, and which keys the catalog may give it.

import { UpstreamProtocol } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { type Capabilities, remoteKeys } from "../capabilities.ts";

/** ElevenLabs' text to speech. */
export const elevenlabs = {
  wire: UpstreamProtocol.ELEVENLABS,
  key: { name: "xi-api-key" },
  keys: remoteKeys,
  serves: {
    speech: { submit: "once", formats: ["mp3", "opus", "wav", "pcm"], ownVoices: true },
  },
} as const satisfies Capabilities;
