import { fileURLToPath } from "node:url";
import { findTrailerError } from "@connectrpc/connect/protocol-grpc";
import * as grpc from "@grpc/grpc-js";
import * as loader from "@grpc/proto-loader";
import { expect } from "vitest";
import { ErrorInfoSchema } from "#proto/google/rpc/error_details_pb.ts";

// A client like a program in another language without genmesh's .proto files. It asks the port for its services.

/** Messages of proto-loader. int64 and enums are strings, and fields have the names of the .proto file. */
export type Message = Record<string, unknown>;

/** Options of a call. */
export interface CallOptions {
  token?: string | undefined;
  /** `ACCOUNT_ID/KEY_ID`. */
  principal?: string;
  /** Milliseconds. Default 10,000. */
  timeoutMs?: number;
}

/** A service of the port, by the names of its methods. */
export interface ReflectedService {
  methods: readonly string[];
  call(method: string, request?: Message, options?: CallOptions): Promise<Message>;
  /** Streams the requests and answers the one response. */
  upload(method: string, requests: readonly Message[], options?: CallOptions): Promise<Message>;
  stream(method: string, request?: Message, options?: CallOptions): MessageStream;
  /** Sends the questions one after the other, and gives their answers. */
  converse(method: string, requests: readonly Message[], options?: CallOptions): Promise<Message[]>;
}

/** A server stream. `cancel` ends it from the client's side. */
export type MessageStream = AsyncIterable<Message> & { cancel(): void };

/** Every service of a port. */
export interface ReflectedPort extends Disposable {
  names: readonly string[];
  service(name: string): ReflectedService;
}

/** The protocol of reflection itself, which every such tool has. */
const protoFolder = fileURLToPath(new URL("../../proto", import.meta.url));
const loading: loader.Options = {
  longs: String,
  enums: String,
  defaults: true,
  oneofs: true,
  keepCase: true,
  includeDirs: [protoFolder],
};

/** Reads a port's description through `grpc.reflection` in this version. */
export async function reflectPort(
  address: string,
  { token, version = "v1" }: { token: string; version?: "v1" | "v1alpha" },
): Promise<ReflectedPort> {
  const reflection = `grpc.reflection.${version}.ServerReflection`;
  const file = `grpc/reflection/${version}/reflection.proto`;
  const clients: grpc.Client[] = [];
  const connect = (definition: loader.PackageDefinition, name: string): ReflectedService => {
    const path = name.split(".");
    const found = path.reduce<grpc.GrpcObject>(
      (at, part) => at[part] as grpc.GrpcObject,
      grpc.loadPackageDefinition(definition),
    );
    const Client = found as unknown as grpc.ServiceClientConstructor;
    const client = new Client(address, grpc.credentials.createInsecure());
    clients.push(client);
    return serviceOf(client, Object.keys(Client.service));
  };
  const bootstrap = connect(await loader.load(file, loading), reflection);
  const ask = (questions: Message[]) =>
    bootstrap.converse("ServerReflectionInfo", questions, { token });
  const [listed = {}] = await ask([{ list_services: "*" }]);
  const { service } = listed.list_services_response as { service: { name: string }[] };
  const names = service.map((one) => one.name);
  const answers = await ask(names.map((name) => ({ file_containing_symbol: name })));
  const definition = loader.loadFileDescriptorSetFromBuffer(fileSet(answers), loading);
  const services = new Map<string, ReflectedService>();
  return {
    names,
    service(name) {
      const known = services.get(name) ?? connect(definition, name);
      services.set(name, known);
      return known;
    },
    [Symbol.dispose]() {
      for (const client of clients) client.close();
    },
  };
}

/** A google.protobuf.FileDescriptorSet of the files in the answers, each once. */
function fileSet(answers: readonly Message[]): Buffer {
  const files = answers.flatMap((answer) => {
    const found = answer.file_descriptor_response as { file_descriptor_proto: Buffer[] };
    return found.file_descriptor_proto.map((bytes) => bytes.toString("base64"));
  });
  const parts = [...new Set(files)].map((file) => Buffer.from(file, "base64"));
  // Field 1, length-delimited, for each.
  return Buffer.concat(
    parts.flatMap((bytes) => [Buffer.from([0x0a]), varint(bytes.length), bytes]),
  );
}

function varint(value: number): Buffer {
  const bytes = [];
  for (let rest = value; ; rest >>>= 7) {
    bytes.push(rest > 0x7f ? (rest & 0x7f) | 0x80 : rest);
    if (rest <= 0x7f) return Buffer.from(bytes);
  }
}

type Callback = (error: grpc.ServiceError | null, answer: Message) => void;

function serviceOf(client: grpc.Client, methods: string[]): ReflectedService {
  // biome-ignore lint/suspicious/noExplicitAny: a client made from a description has methods that no type knows.
  const methodOf = (name: string): any => {
    const method = (client as unknown as Record<string, unknown>)[name];
    return typeof method === "function" ? method.bind(client) : expect.unreachable(`no ${name}`);
  };
  const extra = ({ token, principal, timeoutMs = 10_000 }: CallOptions = {}) => {
    const metadata = new grpc.Metadata();
    if (token) metadata.set("authorization", `Bearer ${token}`);
    if (principal) metadata.set("genmesh-principal", principal);
    return [metadata, { deadline: Date.now() + timeoutMs }] as const;
  };
  const settled = (
    resolve: (answer: Message) => void,
    reject: (error: Error) => void,
  ): Callback => {
    return (error, answer) => (error ? reject(error) : resolve(answer));
  };
  return {
    methods,
    call: (name, request = {}, options) =>
      new Promise((resolve, reject) => {
        methodOf(name)(request, ...extra(options), settled(resolve, reject));
      }),
    upload: (name, requests, options) =>
      new Promise((resolve, reject) => {
        const call = methodOf(name)(...extra(options), settled(resolve, reject));
        for (const request of requests) call.write(request);
        call.end();
      }),
    stream: (name, request = {}, options) => methodOf(name)(request, ...extra(options)),
    async converse(name, requests, options) {
      const call = methodOf(name)(...extra(options));
      for (const request of requests) call.write(request);
      call.end();
      return collect(call);
    },
  };
}

/** All messages of a stream. Rejects with its error. */
export async function collect(stream: AsyncIterable<Message>): Promise<Message[]> {
  const messages: Message[] = [];
  for await (const message of stream) messages.push(message);
  return messages;
}

/** The error of a call that must fail. */
export async function failure(call: Promise<unknown>): Promise<grpc.ServiceError> {
  return call.then(
    () => expect.unreachable("it was not refused"),
    (error: grpc.ServiceError) => error,
  );
}

/** google.rpc.ErrorInfo of an error, from `grpc-status-details-bin`. */
export function errorInfos(error: grpc.ServiceError) {
  const [bytes] = error.metadata.get("grpc-status-details-bin");
  if (!bytes) return [];
  const trailer = new Headers({
    "grpc-status": `${error.code}`,
    "grpc-status-details-bin": (bytes as Buffer).toString("base64"),
  });
  const details = findTrailerError(trailer)?.findDetails(ErrorInfoSchema) ?? [];
  return details.map(({ domain, reason, metadata }) => ({ domain, reason, metadata }));
}
