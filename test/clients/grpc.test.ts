import type { Message } from "@bufbuild/protobuf";
import { create, type DescService, fromBinary, toBinary } from "@bufbuild/protobuf";
import * as grpc from "@grpc/grpc-js";
import { afterAll, beforeAll, expect, test } from "vitest";
import { principalHeader } from "#kit/rpc/principal.ts";
import { AuthService } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import { BillingService, Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { JobKind, MediaService } from "#proto/genmesh/media/v1/media_service_pb.ts";
import { Operation, TextService } from "#proto/genmesh/text/v1/text_service_pb.ts";
import { Health, HealthCheckResponse_ServingStatus } from "#proto/grpc/health/v1/health_pb.ts";
import { type HostWorld, meshToken, startHostWorld } from "../host/world.ts";
import { errorInfos, failure } from "./grpc-reflected.ts";

// The port with an unmodified @grpc/grpc-js, like a gRPC library of another language.

let world: HostWorld;
const clients: grpc.Client[] = [];
beforeAll(async () => {
  world = await startHostWorld();
});
afterAll(async () => {
  for (const client of clients) client.close();
  await world[Symbol.asyncDispose]();
});

test("health answers without a token", async () => {
  const health = clientOf(Health);
  expect(await health.call("check", { service: "" })).toMatchObject({
    status: HealthCheckResponse_ServingStatus.SERVING,
  });
  const error = await failure(health.call("check", { service: "no.such.Service" }));
  expect(error.code).toBe(grpc.status.NOT_FOUND);
});

test("the admin token makes an account, funds it once, and audits it", async () => {
  const auth = clientOf(AuthService, world.mesh.adminToken);
  const billing = clientOf(BillingService, world.mesh.adminToken);
  const made = await auth.call("createAccount", { name: "of grpc-js", operationId: "one" });
  expect(made).toMatchObject({ secret: expect.stringMatching(/^gm_/), replayed: false });
  const { accountId } = made.account as { accountId: string };
  const amount = 9_007_199_254_740_993n;
  const grant = { accountId, unit: Unit.USD_MICROS, amount: amount / 2n, operationId: "grant" };
  expect(await billing.call("grant", grant)).toMatchObject({ replayed: false });
  expect(await billing.call("grant", grant)).toMatchObject({ replayed: true });
  const balance = await billing.call("getBalance", { accountId });
  expect(balance.usdMicros).toMatchObject({ available: amount / 2n, spendable: amount / 2n });
  const findings = await billing.stream("auditLedger", { accountId });
  expect(findings).toMatchObject([
    { finding: { case: "summary", value: { wallets: 1n, entries: 1n, differences: 0n } } },
  ]);
});

test("a refusal is a status with google.rpc.ErrorInfo", async () => {
  const auth = clientOf(AuthService, world.mesh.adminToken);
  const error = await failure(auth.call("getAccount", { accountId: "acct_nobody" }));
  expect(error.code).toBe(grpc.status.NOT_FOUND);
  expect(reasonsOf(error)).toEqual([{ domain: "genmesh", reason: "ACCOUNT_NOT_FOUND" }]);
});

test("the mesh token opens no RPC of the operator", async () => {
  const error = await failure(clientOf(AuthService, meshToken).call("listAccounts", {}));
  expect(error.code).toBe(grpc.status.PERMISSION_DENIED);
  expect(reasonsOf(error)).toEqual([{ domain: "genmesh", reason: "CALLER_FORBIDDEN" }]);
  const balance = await clientOf(BillingService, meshToken).call("getBalance", { accountId: "a" });
  expect(balance.credits).toMatchObject({ available: 0n });
});

test.each([[undefined], ["wrong-token-wrong-token"]])("token %s opens nothing", async (token) => {
  const error = await failure(clientOf(BillingService, token).call("getBalance", {}));
  expect(error.code).toBe(grpc.status.UNAUTHENTICATED);
  expect(reasonsOf(error)).toEqual([{ domain: "genmesh", reason: "CALLER_UNAUTHENTICATED" }]);
});

test("a deadline that has passed ends the call on the client's side", async () => {
  const auth = clientOf(AuthService, meshToken, { deadlineInMs: -1 });
  const error = await failure(auth.call("listAccounts", {}));
  expect(error.code).toBe(grpc.status.DEADLINE_EXCEEDED);
});

test.each<[name: string, service: DescService, request: object]>([
  ["generate", TextService, { operation: Operation.RESPONSES }],
  ["submitJob", MediaService, { kind: JobKind.IMAGE }],
  ["generateSpeech", MediaService, {}],
])("%s refuses a body that would fill the memory once parsed", async (name, service, request) => {
  const client = clientOf(service, meshToken, { principal: "acct_a/key_a" });
  const reasonOf = async (body: string) => {
    const call = client.call(name, { ...request, body: Buffer.from(body) });
    return reasonsOf(await failure(call))[0]?.reason;
  };
  const deep = "[".repeat(1_001) + "]".repeat(1_001);
  expect(await reasonOf(`{"input":${deep},"user":"${"x".repeat(100_000)}"}`)).toBe("INVALID_JSON");
  expect(await reasonOf(`{"input":[${"{},".repeat(600_000)}{}]}`)).toBe("PAYLOAD_TOO_LARGE");
});

type Answer = Message & Record<string, unknown>;

/** A client of grpc-js with the messages of the generated code. */
function clientOf(
  service: DescService,
  token?: string,
  { deadlineInMs = 10_000, principal }: { deadlineInMs?: number; principal?: string } = {},
) {
  const methods = Object.fromEntries(
    service.methods.map((method) => [
      method.localName,
      {
        path: `/${service.typeName}/${method.name}`,
        requestStream: method.methodKind === "client_streaming",
        responseStream: method.methodKind === "server_streaming",
        requestSerialize: (value: object) =>
          Buffer.from(toBinary(method.input, create(method.input, value as never))),
        requestDeserialize: (bytes: Buffer) => fromBinary(method.input, bytes),
        responseSerialize: (value: Answer) => Buffer.from(toBinary(method.output, value)),
        responseDeserialize: (bytes: Buffer) => fromBinary(method.output, bytes),
      },
    ]),
  );
  const Client = grpc.makeGenericClientConstructor(methods, service.typeName);
  const client = new Client(world.mesh.grpcAddress, grpc.credentials.createInsecure());
  clients.push(client);
  const call = (name: string, ...rest: unknown[]) => {
    const metadata = new grpc.Metadata();
    if (token) metadata.set("authorization", `Bearer ${token}`);
    if (principal) metadata.set(principalHeader, principal);
    const method = client[name]?.bind(client) ?? expect.unreachable(`no method ${name}`);
    const [request, ...callback] = rest;
    return method(request, metadata, { deadline: Date.now() + deadlineInMs }, ...callback);
  };
  return {
    call: (name: string, request: object) =>
      new Promise<Answer>((resolve, reject) => {
        call(name, request, (error: grpc.ServiceError | null, answer: Answer) =>
          error ? reject(error) : resolve(answer),
        );
      }),
    async stream(name: string, request: object) {
      const answers: Answer[] = [];
      for await (const one of call(name, request) as AsyncIterable<Answer>) answers.push(one);
      return answers;
    },
  };
}

function reasonsOf(error: grpc.ServiceError): { domain: string; reason: string }[] {
  return errorInfos(error).map(({ domain, reason }) => ({ domain, reason }));
}
