// Answers tools such as grpcurl which services and messages there are. `reflection-index.ts` finds the files.

import type { DescFile } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { file_genmesh_common_v1_error_reason } from "#proto/genmesh/common/v1/error_reason_pb.ts";
import { file_google_rpc_error_details } from "#proto/google/rpc/error_details_pb.ts";
import {
  ServerReflection,
  type ServerReflectionRequest,
} from "#proto/grpc/reflection/v1/reflection_pb.ts";
import {
  ServerReflection as ServerReflectionAlpha,
  type ServerReflectionRequest as ServerReflectionRequestAlpha,
} from "#proto/grpc/reflection/v1alpha/reflection_pb.ts";
import { type ReflectionIndex, reflectionIndex } from "./reflection-index.ts";
import { type RpcService, rpcService } from "./service.ts";

/** Files that no service imports but every error uses, so that a client can read it. */
const filesOfErrors: readonly DescFile[] = [
  file_google_rpc_error_details,
  file_genmesh_common_v1_error_reason,
];

/**
 * Server reflection for `services` and for itself: `grpc.reflection.v1`, and `v1alpha` for older tools. It takes the mesh
 * token like any other service.
 */
export function reflectionServices(services: readonly RpcService[]): RpcService[] {
  const descs = [...services.map((one) => one.desc), ServerReflection, ServerReflectionAlpha];
  const names = descs.map((desc) => ({ name: desc.typeName }));
  const index = reflectionIndex(descs, filesOfErrors);
  async function* answers<R extends AnyRequest>(requests: AsyncIterable<R>) {
    const sent = new Set<DescFile>();
    for await (const request of requests) {
      yield {
        validHost: request.host,
        originalRequest: request,
        messageResponse: answer(request.messageRequest, { index, names, sent }),
      };
    }
  }
  return [
    rpcService(ServerReflection, {
      serverReflectionInfo: (requests) => answers<ServerReflectionRequest>(requests),
    }),
    rpcService(ServerReflectionAlpha, {
      serverReflectionInfo: (requests) => answers<ServerReflectionRequestAlpha>(requests),
    }),
  ];
}

type AnyRequest = ServerReflectionRequest | ServerReflectionRequestAlpha;

interface Stream {
  index: ReflectionIndex;
  /** Names of the services. */
  names: { name: string }[];
  /** Files that were sent on this stream. */
  sent: Set<DescFile>;
}

function answer(asked: AnyRequest["messageRequest"], { index, names, sent }: Stream) {
  const files = (file: DescFile | undefined) =>
    file ? fileAnswer(file, index, sent) : errorAnswer(Code.NotFound, "not found");
  switch (asked.case) {
    case "fileByFilename":
      return files(index.fileOfName(asked.value));
    case "fileContainingSymbol":
      return files(index.fileOfSymbol(asked.value));
    case "fileContainingExtension": {
      const { containingType, extensionNumber } = asked.value;
      return files(index.fileOfExtension(containingType, extensionNumber));
    }
    case "allExtensionNumbersOfType": {
      const extensionNumber = index.extensionsOf(asked.value);
      if (!extensionNumber) return errorAnswer(Code.NotFound, "not found");
      const value = { baseTypeName: asked.value, extensionNumber };
      return { case: "allExtensionNumbersResponse" as const, value };
    }
    case "listServices":
      return { case: "listServicesResponse" as const, value: { service: names } };
    default:
      return errorAnswer(Code.InvalidArgument, "nothing was asked");
  }
}

/** The file in any case, and those of its imports that the stream has not had. */
function fileAnswer(file: DescFile, index: ReflectionIndex, sent: Set<DescFile>) {
  const files = new Set([file]);
  sent.add(file);
  // A set is walked in the order in which it was made, with the items that are added on the way.
  for (const one of files) {
    for (const imported of one.dependencies) {
      if (!sent.has(imported)) files.add(imported);
      sent.add(imported);
    }
  }
  const fileDescriptorProto = [...files].map((one) => index.bytesOf(one));
  return { case: "fileDescriptorResponse" as const, value: { fileDescriptorProto } };
}

function errorAnswer(errorCode: Code, errorMessage: string) {
  return { case: "errorResponse" as const, value: { errorCode, errorMessage } };
}
