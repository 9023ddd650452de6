import { once } from "node:events";
import type { GenerationTask } from "../../services/upstreams/media/port.ts";
import type { Behaviour } from "./scripted-upstream.ts";

/** Bytes that are sent at a time. */
const pieceBytes = 65_536;
/** Milliseconds without a read after which the sender counts as held back. */
const heldAfterMs = 200;

/** An upstream's answer, and a store that reads no byte of it until the upstream is held back. */
export interface HeldBack {
  answer: Behaviour;
  /** `store`, started once the sender is held back. */
  begunLate(store: GenerationTask["store"]): GenerationTask["store"];
  /** Bytes that were sent by that time. */
  sentBytes: Promise<number>;
}

/** Prepares an answer of these bytes, which should be more than the buffers between the two can take. */
export function heldBack(bytes: Buffer): HeldBack {
  const held = Promise.withResolvers<number>();
  return {
    sentBytes: held.promise,
    begunLate: (store) => async (source, mimeType) => {
      await held.promise;
      return store(source, mimeType);
    },
    answer: {
      kind: "custom",
      async handle(_seen, response) {
        response.writeHead(200, { "content-length": bytes.length });
        for (let at = 0; at < bytes.length; at += pieceBytes) {
          if (response.write(bytes.subarray(at, at + pieceBytes))) continue;
          const timer = setTimeout(() => held.resolve(at), heldAfterMs);
          await once(response, "drain");
          clearTimeout(timer);
        }
        response.end();
      },
    },
  };
}
