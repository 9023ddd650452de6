import {
  create,
  type DescField,
  type DescMessage,
  type DescMethod,
  fromBinary,
  getOption,
  hasOption,
  type Message,
  toBinary,
} from "@bufbuild/protobuf";
import { timestampNow } from "@bufbuild/protobuf/wkt";
import { createValidator } from "@bufbuild/protovalidate";
import { ConnectError, type Transport } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, expect, test } from "vitest";
import { principalHeader } from "#kit/rpc/principal.ts";
import { Ignore, field as rulesOf } from "#proto/buf/validate/validate_pb.ts";
import { AuthService } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import { BillingService } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { CatalogService } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { MediaService } from "#proto/genmesh/media/v1/media_service_pb.ts";
import { TextService } from "#proto/genmesh/text/v1/text_service_pb.ts";
import { ErrorInfoSchema } from "#proto/google/rpc/error_details_pb.ts";
import { type HostWorld, startHostWorld } from "../host/world.ts";
import { type Material, valuesOf } from "./rule-values.ts";

// The rules of the proto files, the port, and the services' own checks have the same bounds.

const services = [AuthService, BillingService, CatalogService, TextService, MediaService];
const validator = createValidator();

const digest = new Uint8Array(32);
const body = Buffer.from("{}");
const action = { actionId: `act_${"a".repeat(20)}`, actor: "a", action: "a.b", details: "{}" };
const session = { sessionSha256: digest, secretSha256: digest, client: "a" };
const identity = { issuer: "a", subject: "a" };
const rates = { requestsPerMinute: 1, accountRequestsPerMinute: 1, wanted: 1 };
const sent = { accountId: "acct_a", keyId: "key_a" };
const hold = { ...sent, unit: 1, holdId: "hold_aaaa", kind: 1, checkTime: timestampNow() };

/** A valid message for each method whose messages have rules. */
const messages: Readonly<Record<string, Record<string, unknown>>> = {
  ListAllKeys: {},
  BeginAction: { action },
  EndAction: { ...action, outcome: 1 },
  ListActions: {},
  LookUpKey: { secretSha256: digest },
  WatchKeys: {},
  CreateAccount: { name: "a" },
  ListAccounts: {},
  LeaseRequests: { ...sent, ...rates },
  RotateKey: sent,
  NoteKeyUses: { uses: [{ keyId: "key_a", useTime: timestampNow() }] },
  ListOwnKeys: {},
  CreateManagedKey: { body },
  RotateManagedKey: { keyId: "key_a", body },
  CreateSession: session,
  CreateIdentitySession: { ...session, identity, accountId: "acct_a" },
  CreateOperatorSession: { ...session, identity },
  LookUpSession: session,
  ConfirmSession: session,
  EndSession: session,
  Reserve: hold,
  Settle: hold,
  Apply: { operations: [{ operation: { case: "release", value: hold } }] },
  GetUsage: { ...sent, widthSeconds: 3_600, buckets: 1 },
  ListLines: sent,
  ListAccountHolds: sent,
  GetKeyUsage: sent,
  SetKeyLowBalance: sent,
  SetMonthlyGrant: sent,
  Grant: { ...sent, unit: 1, amount: 1n, operationId: "a" },
  Refund: { ...sent, unit: 1, entryNumber: 1n, operationId: "a" },
  GetMargins: { days: 1 },
  ListHolds: {},
  EndHold: hold,
  ListEntries: sent,
  ListVersions: {},
  PutInForce: { text: { case: "yaml", value: "a" }, actor: "a", operationId: "a" },
  SetUpstreamKey: { name: "a", key: "a", actor: "a" },
  Generate: { operation: 1, responses: {} },
  StreamGenerate: { operation: 1, responses: {} },
  EraseAccount: sent,
  ListUpstreamHistory: { hours: 1 },
  SubmitJob: { kind: 1, body },
  ListJobs: {},
  GenerateSpeech: { body },
  StreamSpeech: { speech: { body } },
  UploadFile: { part: { case: "header", value: { fileName: "a", purpose: "a" } } },
  ListFiles: {},
  ListAccountJobs: {},
  RetryJob: { jobId: "job_a" },
  AnnounceEvent: {
    webhookId: `evt_${"a".repeat(24)}`,
    accountId: "acct_a",
    type: "balance.low",
    url: "https://example.com/",
  },
  ListWebhooks: {},
  RotateWebhookSecret: {},
  ListAccountWebhooks: sent,
};

/** Texts and items of fields for which letters do not do. */
const materials: Readonly<Record<string, Material>> = {
  details: { text: (n) => `{${" ".repeat(Math.max(0, n - 2))}}`.slice(0, n) },
  key_ids: { item: (i) => `key_${i}` },
  models: { item: (i) => `model-${i}` },
  uses: { item: (i) => ({ keyId: `key_${i}`, useTime: timestampNow() }) },
  operations: {
    item: (i) => ({
      operation: { case: "release", value: { ...hold, holdId: `hold_${1_000 + i}` } },
    }),
  },
};

let world: HostWorld;
let transport: Transport;
beforeAll(async () => {
  world = await startHostWorld();
  const baseUrl = `http://${world.mesh.grpcAddress}`;
  transport = createGrpcTransport({ baseUrl });
});
afterAll(() => world[Symbol.asyncDispose]());

const ruled = services.flatMap((service) =>
  service.methods.flatMap((method) => pathsOf(method.input).map((path) => ({ method, path }))),
);

test("every method with rules has a valid message here, and each of them is one", () => {
  const names = ruled.map(({ method }) => method.name);
  expect(Object.keys(messages).sort()).toEqual([...new Set(names)].sort());
  for (const { method } of ruled) {
    expect(kindOf(method, create(method.input, messages[method.name])), method.name).toBe("valid");
  }
});

test.for(
  ruled.map(({ method, path }) => ({
    name: `${method.parent.name}.${method.name} ${path.map((one) => one.name).join(".")}`,
    method,
    path,
  })),
)("$name", async ({ method, path }) => {
  const field = path.at(-1) as DescField;
  const values = valuesOf(field, getOption(field, rulesOf), materials[field.name]);
  for (const value of values.within) {
    const message = messageWith(method, path, value);
    expect(kindOf(method, message)).toBe("valid");
    expect(["INVALID_ARGUMENT", "INVALID_IDEMPOTENCY_KEY"]).not.toContain(
      await reasonOf(method, message),
    );
  }
  for (const value of values.beyond) {
    const message = messageWith(method, path, value);
    expect(kindOf(method, message)).toBe("invalid");
    const isKey = field.name === "idempotency_key";
    expect(await reasonOf(method, message)).toBe(
      isKey ? "INVALID_IDEMPOTENCY_KEY" : "INVALID_ARGUMENT",
    );
  }
});

/** The ways from a message to its fields with rules. Items whose rules do not count are not entered. */
function pathsOf(desc: DescMessage, above: readonly DescField[] = []): DescField[][] {
  if (above.length > 4) return [];
  return desc.fields.flatMap((field) => {
    const path = [...above, field];
    const own = hasOption(field, rulesOf) ? [path] : [];
    return field.message && !isIgnored(field) ? [...own, ...pathsOf(field.message, path)] : own;
  });
}

function isIgnored(field: DescField): boolean {
  const { type } = getOption(field, rulesOf);
  return type.case === "repeated" && type.value.items?.ignore === Ignore.ALWAYS;
}

/** A valid message with another value in one field. */
function messageWith(method: DescMethod, path: readonly DescField[], value: unknown): Message {
  const whole = create(method.input, messages[method.name]);
  let at = whole as unknown as Record<string, unknown>;
  for (const [depth, { localName, oneof }] of path.entries()) {
    if (depth === path.length - 1) {
      if (oneof) at[oneof.localName] = { case: localName, value };
      else if (value === undefined) delete at[localName];
      else at[localName] = value;
      break;
    }
    const inner = oneof ? (at[oneof.localName] as { value: unknown }).value : at[localName];
    at = (Array.isArray(inner) ? inner[0] : inner) as typeof at;
  }
  // Items and messages are given as plain objects.
  const { $typeName: _, ...plain } = whole as Message & Record<string, unknown>;
  return create(method.input, plain);
}

function kindOf(method: DescMethod, message: Message): string {
  return validator.validate(method.input, fromBinary(method.input, toBinary(method.input, message)))
    .kind;
}

/** The reason of the port's refusal. Undefined: it did not refuse. */
async function reasonOf(method: DescMethod, message: Message): Promise<string | undefined> {
  const header = {
    authorization: `Bearer ${world.mesh.adminToken}`,
    [principalHeader]: "acct_a/key_a",
  };
  const left = new AbortController();
  try {
    if (method.methodKind === "unary") {
      await transport.unary(method as never, undefined, undefined, header, message);
    } else {
      const { message: answers } = await transport.stream(
        method as never,
        left.signal,
        undefined,
        header,
        streamOf(method, message) as never,
      );
      // One answer tells that the message was taken. A watch goes on after it.
      for await (const _ of answers) break;
    }
    return undefined;
  } catch (error) {
    const [info] = ConnectError.from(error).findDetails(ErrorInfoSchema);
    if (!info) throw error;
    return info.reason;
  } finally {
    left.abort();
  }
}

async function* streamOf(method: DescMethod, message: Message) {
  const first = create(method.input, messages[method.name]);
  const { part } = message as Message & { part?: { case: string } };
  if (part?.case === "chunk") yield first;
  yield message;
}
