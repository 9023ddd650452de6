// Writes and reads a method's messages for a client, and says whether a call may be sent twice. `routes.ts` does it for a server.

import type { DescMethod, Message } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Idempotency } from "@bufbuild/protobuf/wkt";
import { createMethodSerializationLookup } from "@connectrpc/connect/protocol";
import { memo } from "#kit/base/memo.ts";
import { plain, prefixOf } from "./envelope.ts";

/** Writes and reads a method's messages. */
export interface Codec {
  path: string;
  write(message: Message): Uint8Array;
  read(bytes: Uint8Array): Message;
  /** May the call be sent again, though an earlier attempt may have been carried out? */
  isRepeatable: boolean;
}

/** Looks up a method's codec, which is made once. */
export function codecs(maxBytes: number): (method: DescMethod) => Codec {
  const limits = { readMaxBytes: maxBytes, writeMaxBytes: maxBytes };
  return memo((method: DescMethod): Codec => {
    const lookup = createMethodSerializationLookup(method, undefined, undefined, limits);
    return {
      path: `/${method.parent.typeName}/${method.name}`,
      write: (message) => lookup.getI(true).serialize(message as never),
      read: (bytes) => lookup.getO(true).parse(plain(bytes)),
      isRepeatable:
        method.idempotency === Idempotency.IDEMPOTENT ||
        method.idempotency === Idempotency.NO_SIDE_EFFECTS,
    };
  });
}

/** The only message of a stream of requests, as bytes. */
export async function whole(messages: AsyncIterable<Message>, codec: Codec): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for await (const part of enveloped(messages, codec)) parts.push(part);
  return parts.length === 1 ? (parts[0] as Uint8Array) : Buffer.concat(parts);
}

/** The bytes of a stream of requests. */
export async function* enveloped(
  messages: AsyncIterable<Message>,
  codec: Codec,
): AsyncIterable<Uint8Array> {
  for await (const message of messages) {
    const payload = codec.write(message);
    yield Buffer.concat([prefixOf(0, payload.length), payload]);
  }
}
