import { create, type DescMessage } from "@bufbuild/protobuf";
import { createValidator } from "@bufbuild/protovalidate";
import { LookUpKeyRequestSchema } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import {
  ApplyRequestSchema,
  ReserveRequestSchema,
} from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { SubmitJobRequestSchema } from "#proto/genmesh/media/v1/media_service_pb.ts";
import { GenerateRequestSchema } from "#proto/genmesh/text/v1/text_service_pb.ts";

// `node bench/rules.ts`: the time that the rules of proto/ take for the commonest messages of the gRPC port, in microseconds of CPU.

const body = new Uint8Array(600);
const holdId = "req_0123456789abcdefghij0123";
const hold = { accountId: "acct_0123456789abcdefghij", unit: 1, holdId, amount: 1_000n };
const reserve = { ...hold, keyId: "key_0123456789abcdefghij", kind: 1, ref: holdId };
const messages: [desc: DescMessage, fields: object][] = [
  [GenerateRequestSchema, { operation: 1, body, admission: {} }],
  [SubmitJobRequestSchema, { kind: 1, body, idempotencyKey: "a".repeat(36) }],
  [ReserveRequestSchema, reserve],
  [ApplyRequestSchema, { operations: [{ operation: { case: "reserve", value: reserve } }] }],
  [LookUpKeyRequestSchema, { secretSha256: new Uint8Array(32) }],
];
const rounds = 20_000;

const validator = createValidator({ failFast: true });
for (const [desc, fields] of messages) {
  const message = create(desc, fields as never);
  const run = () => {
    for (let i = 0; i < rounds; i++) {
      const { kind } = validator.validate(desc, message);
      if (kind !== "valid") throw new Error(`${desc.typeName} is ${kind}`);
    }
  };
  run();
  const began = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(began);
  process.stdout.write(`${((user + system) / rounds).toFixed(2)} µs  ${desc.typeName}\n`);
}
