import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { ReviewSchema } from "#proto/genmesh/text/v1/text_service_pb.ts";
import { printedReview, reviewDocument } from "./hold-document.ts";

const at = "2026-01-15T12:00:00.000Z";
const review = create(ReviewSchema, {
  requestId: "resp_1",
  accountId: "acct_1",
  holdId: "req_1",
  model: "chat-mini",
  reportedUsage: '{"output":9}',
  reviewTime: timestampFromMs(Date.parse(at)),
  chargedUsdMicros: 12n,
});

test("usage in review is shown with what was charged, or that nothing was yet", () => {
  const shared = { accountId: "acct_1", holdId: "req_1", model: "chat-mini" };
  const shown = { ...shared, object: "review", requestId: "resp_1", reviewedAt: at };
  const printed = { ...shared, at };
  expect(reviewDocument(review)).toEqual({
    ...shown,
    ...{ reportedUsage: { output: 9 }, chargedUsdMicros: 12n },
  });
  expect(printedReview(review)).toEqual({
    ...printed,
    ...{ reported: '{"output":9}', chargedUsdMicros: 12n },
  });
  const open = create(ReviewSchema, { ...review, chargedUsdMicros: undefined });
  expect(reviewDocument(open).chargedUsdMicros).toBeNull();
  expect(printedReview(open).chargedUsdMicros).toBe(0n);
});
