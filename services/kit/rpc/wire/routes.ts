// Finds the method of a path on the server's side, and reads and writes its messages. `codec.ts` does that for clients.

import type { Message } from "@bufbuild/protobuf";
import { createServiceImplSpec, type Interceptor, type MethodImplSpec } from "@connectrpc/connect";
import { createMethodSerializationLookup } from "@connectrpc/connect/protocol";
import { isOpenService, maxOpenMessageBytes } from "../gate.ts";
import type { RpcService } from "../service.ts";
import { plain } from "./envelope.ts";

/** One served method. */
export interface Route {
  spec: MethodImplSpec;
  isStream: boolean;
  interceptors: readonly Interceptor[];
  /** Largest request or message of a stream, in bytes. */
  maxBytes: number;
  /** Reads a request's message. `isBinary`: protobuf, otherwise JSON. Throws a ConnectError. */
  read(bytes: Uint8Array, isBinary: boolean): Message;
  /** Writes an answer's message. Throws a ConnectError. */
  write(message: Message, isBinary: boolean): Uint8Array;
}

/** The methods of all services by their path. */
export function routesOf(
  services: readonly RpcService[],
  common: Pick<Route, "interceptors" | "maxBytes">,
): Map<string, Route> {
  const routes = new Map<string, Route>();
  for (const { desc, impl } of services) {
    const maxBytes = isOpenService(desc.typeName) ? maxOpenMessageBytes : common.maxBytes;
    const limits = { readMaxBytes: maxBytes, writeMaxBytes: common.maxBytes };
    for (const spec of Object.values(createServiceImplSpec(desc, impl).methods)) {
      const { method } = spec;
      const codec = createMethodSerializationLookup(method, undefined, undefined, limits);
      routes.set(`/${desc.typeName}/${method.name}`, {
        ...common,
        maxBytes,
        spec,
        isStream: spec.kind !== "unary",
        read: (bytes, isBinary) => codec.getI(isBinary).parse(plain(bytes)),
        write: (message, isBinary) => codec.getO(isBinary).serialize(message as never),
      });
    }
  }
  return routes;
}
