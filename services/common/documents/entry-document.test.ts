import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { type Line, LineSchema } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { operatorEntryColumns, operatorEntryCsv, operatorEntryDocument } from "./entry-document.ts";

const line: Line = create(LineSchema, {
  ...{ number: 1n, kind: "responses", amount: -5n },
  record: {
    upstream: "main#2",
    failedTries: [
      { lane: "main", kind: "rate_limited", status: 429 },
      { lane: "west", kind: "unreachable" },
    ],
  },
});

test("an operator's file names the upstream that answered, and the tries that failed before", () => {
  expect(operatorEntryDocument(line)).toMatchObject({
    upstream: "main#2",
    failedTries: [
      { upstream: "main", failure: "rate_limited", status: 429 },
      { upstream: "west", failure: "unreachable", status: null },
    ],
  });
  const cells = operatorEntryCsv(line).trim().split(",");
  expect(cells[operatorEntryColumns.indexOf("failedTries")]).toBe(
    "main=rate_limited west=unreachable",
  );
});
