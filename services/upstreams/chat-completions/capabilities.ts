// The row of Chat Completions in `../protocols.ts`: what its servers can do, and which keys the catalog may give them.

import { UpstreamProtocol } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { type Capabilities, remoteKeys } from "../capabilities.ts";

/**
 * The row of a protocol: servers that have only Chat Completions, embeddings and transcriptions. `keys` are settings of the catalog.
 * `native`: a chat goes up as it came, without a translation.
 */
export const chatCompletions = {
  wire: UpstreamProtocol.CHAT_COMPLETIONS,
  keys: [...remoteKeys, "outputLimit"],
  serves: {
    chat: { responses: false, chat: "native", files: true },
    embedding: true,
    transcription: true,
  },
} as const satisfies Capabilities;
