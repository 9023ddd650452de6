// The operator's routes for notices about the installation, and for a test of the ways by which they are sent.
// `alerts-and-webhooks.ts` is about messages to accounts.

import type { FastifyInstance } from "fastify";
import { isoTimeOrNull } from "#common/documents/answer-values.ts";
import type { Edge } from "../../context.ts";
import { type AdminCall, adminRoute, listOf } from "./context.ts";

/** Routes of the operator's notices, and of the ways by which genmesh sends them. */
export function noticeRoutes(app: FastifyInstance, edge: Edge): void {
  adminRoute(app, edge, { method: "GET", url: "/notices", handle: notices });
  adminRoute(app, edge, { method: "POST", url: "/alerts/test", handle: test });
}

async function notices(call: AdminCall) {
  const found = await call.peers.media.listNotices({}, call.options);
  const documents = found.notices.map(({ noticeId, beginTime, ...facts }) => {
    const { kind, subject, severity, text, alert } = facts;
    return {
      object: "notice",
      id: noticeId,
      ...{ kind, subject, severity, text, alert: alert || null },
      beganAt: isoTimeOrNull(beginTime),
    };
  });
  return {
    ...listOf(documents),
    ways: found.ways.map((way) => ({
      way: way.name,
      failures: way.failures,
      lastAnswer: way.lastAnswer || null,
      lastAttemptAt: isoTimeOrNull(way.lastAttemptTime),
      lastDeliveredAt: isoTimeOrNull(way.lastDeliveryTime),
      nextAttemptAt: isoTimeOrNull(way.nextAttemptTime),
    })),
  };
}

/** Sends a test by each way. */
async function test(call: AdminCall) {
  const { answers } = await call.audited({ action: "alert.test" }, () =>
    call.peers.media.sendTestAlert({}, call.options),
  );
  return listOf(
    answers.map(({ way, isDelivered, answer }) => ({
      ...{ object: "alert.test", way, isDelivered, answer },
    })),
  );
}
