// Finds the proto files that gRPC tools ask for by reflection. `reflection.ts` answers them.

import {
  type DescEnum,
  type DescFile,
  type DescMessage,
  type DescService,
  toBinary,
} from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";

/** The index behind reflection: every file of a set of services, by name, symbol and extension. */
export interface ReflectionIndex {
  fileOfName(name: string): DescFile | undefined;
  /** `symbol` is a full name; a leading dot is allowed. */
  fileOfSymbol(symbol: string): DescFile | undefined;
  fileOfExtension(extendee: string, number: number): DescFile | undefined;
  /** Undefined where no message has this name. */
  extensionsOf(extendee: string): number[] | undefined;
  /** The file as a serialised FileDescriptorProto. */
  bytesOf(file: DescFile): Uint8Array;
}

/** Indexes the files of `services` and `files`, with everything that they import. */
export function reflectionIndex(
  services: readonly DescService[],
  files: readonly DescFile[],
): ReflectionIndex {
  const byName = new Map<string, DescFile>();
  const bySymbol = new Map<string, DescFile>();
  const byExtension = new Map<string, Map<number, DescFile>>();
  const messages = new Set<string>();
  const bytes = new Map<DescFile, Uint8Array>();

  const addEnum = (desc: DescEnum) => {
    bySymbol.set(desc.typeName, desc.file);
    // A value belongs to the scope that holds its enum, not to the enum.
    const scope = desc.typeName.slice(0, -desc.name.length);
    for (const value of desc.values) bySymbol.set(`${scope}${value.name}`, desc.file);
  };
  const addExtensions = (scope: Pick<DescMessage, "nestedExtensions">) => {
    for (const extension of scope.nestedExtensions) addExtension(extension, byExtension, bySymbol);
  };
  const addMessage = (desc: DescMessage) => {
    messages.add(desc.typeName);
    bySymbol.set(desc.typeName, desc.file);
    for (const { name } of [...desc.fields, ...desc.oneofs])
      bySymbol.set(`${desc.typeName}.${name}`, desc.file);
    for (const nested of desc.nestedMessages) addMessage(nested);
    for (const nested of desc.nestedEnums) addEnum(nested);
    addExtensions(desc);
  };
  const addFile = (file: DescFile) => {
    const name = file.proto.name;
    if (byName.has(name)) return;
    byName.set(name, file);
    for (const imported of file.dependencies) addFile(imported);
    for (const desc of file.messages) addMessage(desc);
    for (const desc of file.enums) addEnum(desc);
    for (const desc of file.extensions) addExtension(desc, byExtension, bySymbol);
    for (const desc of file.services) {
      bySymbol.set(desc.typeName, file);
      for (const method of desc.methods) bySymbol.set(`${desc.typeName}.${method.name}`, file);
    }
  };
  for (const file of [...services.map((one) => one.file), ...files]) addFile(file);

  return {
    fileOfName: (name) => byName.get(name),
    fileOfSymbol: (symbol) => bySymbol.get(symbol.replace(/^\./, "")),
    fileOfExtension: (extendee, number) => byExtension.get(extendee)?.get(number),
    extensionsOf: (extendee) =>
      messages.has(extendee) ? [...(byExtension.get(extendee)?.keys() ?? [])] : undefined,
    bytesOf(file) {
      const known = bytes.get(file) ?? toBinary(FileDescriptorProtoSchema, file.proto);
      bytes.set(file, known);
      return known;
    },
  };
}

function addExtension(
  extension: DescFile["extensions"][number],
  byExtension: Map<string, Map<number, DescFile>>,
  bySymbol: Map<string, DescFile>,
): void {
  const extendee = extension.extendee.typeName;
  const known = byExtension.get(extendee) ?? new Map<number, DescFile>();
  byExtension.set(extendee, known.set(extension.number, extension.file));
  bySymbol.set(extension.typeName, extension.file);
}
