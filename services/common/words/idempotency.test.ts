import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { AdmissionSchema } from "#proto/genmesh/common/v1/access_pb.ts";
import { refuseAtEdge } from "./idempotency.ts";

const admission = (refuseWith: ErrorReason, refusalMessage = "") =>
  create(AdmissionSchema, { refuseWith, refusalMessage });

test("what the edge admitted is let through", () => {
  refuseAtEdge(undefined);
  refuseAtEdge(create(AdmissionSchema));
  refuseAtEdge(admission(ErrorReason.UNSPECIFIED, "no reason"));
});

test("its refusal is given with its reason, and its words where it has any", () => {
  expect(() => refuseAtEdge(admission(ErrorReason.RATE_LIMIT_EXCEEDED, "Wait."))).toThrow(
    expect.objectContaining({ reason: ErrorReason.RATE_LIMIT_EXCEEDED, message: "Wait." }),
  );
  expect(() => refuseAtEdge(admission(ErrorReason.PERMISSION_DENIED))).toThrow(
    expect.objectContaining({ message: "The API key may not do this." }),
  );
});

test("a reason of a newer edge refuses all the same", () => {
  expect(() => refuseAtEdge(admission(60_000 as ErrorReason, "Newer."))).toThrow(
    expect.objectContaining({ reason: ErrorReason.PERMISSION_DENIED, message: "Newer." }),
  );
});
