import { createHash } from "node:crypto";
import { fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import * as grpc from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TextService } from "#proto/genmesh/text/v1/text_service_pb.ts";
import { type HostWorld, meshToken, startHostWorld } from "../host/world.ts";
import {
  collect,
  errorInfos,
  failure,
  type Message,
  type ReflectedPort,
  type ReflectedService,
  reflectPort,
} from "./grpc-reflected.ts";

// Calls every service of the port through a client that has only its reflection.

let world: HostWorld;
let port: ReflectedPort;
let admin: { token: string };
let caller: { token: string; principal: string; accountId: string; secret: string };
const mesh = { token: meshToken };
const of = (name: string): ReflectedService => port.service(`genmesh.${name}`);
const json = (body: object) => Buffer.from(JSON.stringify(body));
const png = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

beforeAll(async () => {
  world = await startHostWorld();
  port = await reflectPort(world.mesh.grpcAddress, { token: meshToken });
  admin = { token: world.mesh.adminToken };
  const made = await of("auth.v1.AuthService").call("CreateAccount", { name: "reflected" }, admin);
  const { account_id: accountId, key_id: keyId } = made.key as Record<string, string>;
  caller = {
    ...{ token: meshToken, principal: `${accountId}/${keyId}` },
    ...{ accountId: accountId ?? "", secret: `${made.secret}` },
  };
  for (const unit of ["UNIT_USD_MICROS", "UNIT_CREDITS"]) {
    const grant = { account_id: accountId, unit, amount: "1000000", operation_id: unit };
    await of("billing.v1.BillingService").call("Grant", grant, admin);
  }
});
afterAll(async () => {
  port?.[Symbol.dispose]();
  await world?.[Symbol.asyncDispose]();
});

/** Milliseconds for a small image, even on a busy machine. */
const jobMs = 45_000;
const served = [
  ...["auth.v1.AuthService", "billing.v1.BillingService", "catalog.v1.CatalogService"],
  ...["common.v1.ProcessService", "media.v1.MediaService", "text.v1.TextService"],
].map((name) => `genmesh.${name}`);
const standard = [
  "grpc.health.v1.Health",
  "grpc.reflection.v1.ServerReflection",
  "grpc.reflection.v1alpha.ServerReflection",
];

describe("what the port says of itself", () => {
  test.each(["v1", "v1alpha"] as const)("%s lists every service", async (version) => {
    using other = await reflectPort(world.mesh.grpcAddress, { token: meshToken, version });
    expect([...other.names].sort()).toEqual([...served, ...standard]);
    const { methods } = other.service("genmesh.text.v1.TextService");
    expect(methods).toEqual(TextService.methods.map(({ name }) => name));
  });

  test("each question has its answer, in order, and an unknown name ends nothing", async () => {
    const methodOptions = "google.protobuf.MethodOptions";
    const text = "genmesh/text/v1/text_service.proto";
    const [access, reason] = ["access.proto", "error_reason.proto"];
    const common = (file: string) => `genmesh/common/v1/${file}`;
    const questions: [Message, unknown][] = [
      [
        { file_by_filename: text },
        [
          ...[text, "buf/validate/validate.proto"],
          ...[access, "hold_verdict.proto", "rpc_access.proto"].map(common),
          ...["struct", "timestamp", "descriptor", "duration", "field_mask"].map(
            (name) => `google/protobuf/${name}.proto`,
          ),
          common(reason),
        ],
      ],
      // A file that the stream has sent is sent again only where its own name is requested.
      [{ file_containing_symbol: "genmesh.text.v1.TextService.Generate" }, [text]],
      [{ file_containing_symbol: ".genmesh.text.v1.GenerateRequest.body" }, [text]],
      [{ file_containing_symbol: "genmesh.common.v1.Admission" }, [common(access)]],
      [{ file_containing_symbol: "genmesh.common.v1.SCOPE_TEXT" }, [common(access)]],
      [{ file_containing_symbol: "no.such.Thing" }, 5],
      [{ file_by_filename: "no/such/file.proto" }, 5],
      [{ file_containing_symbol: "google.rpc.ErrorInfo" }, ["google/rpc/error_details.proto"]],
      [{ all_extension_numbers_of_type: methodOptions }, { numbers: [50_701] }],
      [
        { file_containing_extension: { containing_type: methodOptions, extension_number: 50_701 } },
        [common("rpc_access.proto")],
      ],
      [{ all_extension_numbers_of_type: "no.such.Type" }, 5],
      [{}, 3],
    ];
    const reflection = port.service("grpc.reflection.v1.ServerReflection");
    const asked = questions.map(([question]) => ({ host: "here", ...question }));
    const answers = await reflection.converse("ServerReflectionInfo", asked, mesh);
    expect(answers).toMatchObject(
      questions.map(([question]) => ({ valid_host: "here", original_request: question })),
    );
    expect(answers.map(saidIn)).toEqual(questions.map(([, answer]) => answer));
  });

  test("every method but health's is closed without a token", async () => {
    for (const name of port.names.filter((one) => one !== "grpc.health.v1.Health")) {
      const service = port.service(name);
      for (const method of service.methods) {
        const error = await failure(callOf(service, method));
        expect([name, method, error.code]).toEqual([name, method, grpc.status.UNAUTHENTICATED]);
        expect(errorInfos(error)).toMatchObject([{ reason: "CALLER_UNAUTHENTICATED" }]);
      }
    }
  });
});

describe("every service answers", () => {
  test("health", async () => {
    const health = port.service("grpc.health.v1.Health");
    for (const service of ["", ...served]) {
      expect(await health.call("Check", { service })).toEqual({ status: "SERVING" });
    }
    const watch = health.stream("Watch", { service: "" });
    for await (const message of watch) {
      expect(message).toEqual({ status: "SERVING" });
      break;
    }
  });

  test("auth: a look-up, and a refusal with its reason", async () => {
    const auth = of("auth.v1.AuthService");
    const secret_sha256 = createHash("sha256").update(caller.secret).digest();
    const found = await auth.call("LookUpKey", { secret_sha256 }, mesh);
    expect(found.key).toMatchObject({ account_id: caller.accountId });
    const error = await failure(auth.call("LookUpKey", { secret_sha256: Buffer.alloc(32) }, mesh));
    expect(error.code).toBe(grpc.status.UNAUTHENTICATED);
    expect(errorInfos(error)).toMatchObject([{ domain: "genmesh", reason: "INVALID_API_KEY" }]);
  });

  test("billing: a balance, and the stream of an audit", async () => {
    const billing = of("billing.v1.BillingService");
    const account_id = caller.accountId;
    const balance = await billing.call("GetBalance", { account_id }, mesh);
    expect(balance).toMatchObject({ credits: { granted: "1000000" } });
    const findings = await collect(billing.stream("AuditLedger", { account_id }, admin));
    expect(findings).toMatchObject([{ summary: { wallets: "2", differences: "0" } }]);
  });

  test("catalog: the snapshot, and the stream of those to come", async () => {
    const catalog = of("catalog.v1.CatalogService");
    const { snapshot } = await catalog.call("GetSnapshot", {}, mesh);
    const { version } = snapshot as { version: string };
    expect(await catalog.call("GetSnapshot", { known_version: version }, mesh)).toEqual({
      snapshot: null,
    });
    for await (const message of catalog.stream("WatchSnapshots", {}, mesh)) {
      expect(message.snapshot).toMatchObject({ version });
      break;
    }
  });

  test("text: an answer, a stream of events, and a refusal that names the field", async () => {
    const text = of("text.v1.TextService");
    const request = (more: object = {}) => ({
      operation: "OPERATION_RESPONSES",
      body: json({ model: "chat-1", input: "Say hello.", ...more }),
    });
    const { body } = await text.call("Generate", request(), caller);
    expect(JSON.parse(`${body}`)).toMatchObject({ object: "response", status: "completed" });
    const parts = await collect(text.stream("StreamGenerate", request({ stream: true }), caller));
    const events = parts.map((part) => `${part.events}`).join("");
    expect(events).toMatch(/^event: response\.created\n.*\ndata: \[DONE\]\n\n$/s);
    const error = await failure(text.call("Generate", request({ model: "no-such" }), caller));
    expect(error.code).toBe(grpc.status.INVALID_ARGUMENT);
    expect(errorInfos(error)).toMatchObject([
      { domain: "genmesh", reason: "MODEL_NOT_FOUND", metadata: { param: "model" } },
    ]);
  });

  test(
    "media: an upload as a client stream, a job watched to its end, speech",
    async () => {
      const media = of("media.v1.MediaService");
      const { file } = await media.upload(
        "UploadFile",
        [{ header: { file_name: "dot.png", purpose: "vision" } }, { chunk: png }],
        caller,
      );
      expect(file).toMatchObject({ size_bytes: `${png.length}` });
      const { job } = await media.call(
        "SubmitJob",
        { kind: "JOB_KIND_IMAGE", body: json({ model: "image-1", prompt: "A boat." }) },
        caller,
      );
      const { job_id } = job as { job_id: string };
      const watch = media.stream("WatchJob", { job_id }, { ...caller, timeoutMs: jobMs });
      const changes = await collect(watch);
      const last = changes.filter((change) => change.job).at(-1);
      expect(last?.job).toMatchObject({ status: "JOB_STATUS_COMPLETED", progress: 100 });
      const spoken = await media.call(
        "GenerateSpeech",
        { body: json({ model: "speech-1", input: "Hello.", voice: "alloy" }) },
        caller,
      );
      expect(spoken).toMatchObject({ characters: "6", audio: { mime_type: "audio/mpeg" } });
      const error = await failure(
        media.call("GetJob", { job_id }, { ...caller, principal: "a/b" }),
      );
      expect(error.code).toBe(grpc.status.NOT_FOUND);
      expect(errorInfos(error)).toMatchObject([{ reason: "JOB_NOT_FOUND" }]);
      const unnamed = await failure(media.call("GetJob", { job_id }, mesh));
      expect(unnamed.code).toBe(grpc.status.UNAUTHENTICATED);
      expect(errorInfos(unnamed)).toMatchObject([
        { reason: "CALLER_UNAUTHENTICATED", metadata: { needs: "genmesh-principal" } },
      ]);
    },
    2 * jobMs,
  );
});

describe("a call's end", () => {
  test("a deadline ends a stream that has begun", async () => {
    const watch = of("auth.v1.AuthService").stream("WatchKeys", {}, { ...mesh, timeoutMs: 300 });
    const error = await failure(collect(watch));
    expect(error.code).toBe(grpc.status.DEADLINE_EXCEEDED);
  });

  test("a cancelled stream ends as cancelled", async () => {
    const watch = of("catalog.v1.CatalogService").stream("WatchSnapshots", {}, mesh);
    const seen: Message[] = [];
    const reading = (async () => {
      for await (const message of watch) {
        seen.push(message);
        watch.cancel();
      }
    })();
    expect((await failure(reading)).code).toBe(grpc.status.CANCELLED);
    expect(seen).toHaveLength(1);
  });
});

/** A reflection answer in short form: names of files, numbers of extensions, or the code of an error. */
function saidIn(answer: Message): unknown {
  const found = answer.file_descriptor_response as { file_descriptor_proto: Buffer[] } | undefined;
  const numbers = answer.all_extension_numbers_response as { extension_number: number[] };
  if (found) {
    return found.file_descriptor_proto.map(
      (file) => fromBinary(FileDescriptorProtoSchema, file).name,
    );
  }
  if (numbers) return { numbers: numbers.extension_number };
  return (answer.error_response as { error_code: number }).error_code;
}

/** A call of the method with an empty message, of any kind. */
function callOf(service: ReflectedService, method: string): Promise<unknown> {
  if (method === "ServerReflectionInfo") return service.converse(method, [{}]);
  if (method === "UploadFile") return service.upload(method, []);
  if (/^(Watch|Stream|Audit)/.test(method)) return collect(service.stream(method));
  return service.call(method);
}
