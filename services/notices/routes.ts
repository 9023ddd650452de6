// Answers the methods of MediaService by which operators list notices and send a test. Media serves them, and nothing else of
// them is there.

import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { Ids } from "#kit/base/ids.ts";
import type { Clock } from "#kit/time/clock.ts";
import type { MediaService } from "#proto/genmesh/media/v1/media_service_pb.ts";
import type { AlertEvents } from "./events.ts";
import { testMessage } from "./message.ts";
import { factsOf } from "./notice.ts";
import type { Send } from "./senders.ts";
import type { NoticeStore } from "./store.ts";
import type { WayName } from "./way.ts";

/** The RPCs of MediaService for the operator's notices. */
export type NoticeMethods = Pick<ServiceImpl<typeof MediaService>, "listNotices" | "sendTestAlert">;

/** Makes the RPCs. The service's proto file describes their guarantees. */
export function createNoticeMethods(context: {
  clock: Clock;
  ids: Ids;
  store: NoticeStore;
  senders: ReadonlyMap<WayName, Send>;
  events: AlertEvents;
}): NoticeMethods {
  const { clock, ids, store, senders, events } = context;
  return {
    async listNotices() {
      const lasting = await store.lasting(clock.now());
      const ways = await Promise.all([...senders.keys()].map((name) => store.way(name)));
      return {
        notices: lasting.map(({ noticeId, kind, subject, beganAt }) => ({
          ...{ noticeId, kind, subject, ...factsOf({ kind, subject }) },
          beginTime: timestampFromMs(beganAt),
        })),
        ways: ways.map(({ way, failures, lastAnswer = "", sending, dueAt, ...times }) => ({
          ...{ name: way, failures, lastAnswer },
          ...timeOf("lastAttemptTime", times.lastAttemptAt),
          ...timeOf("lastDeliveryTime", times.lastDeliveredAt),
          ...timeOf("nextAttemptTime", sending && failures > 0 ? dueAt : undefined),
        })),
      };
    },
    async sendTestAlert(_, { signal }) {
      const message = testMessage(ids.make("evt"), clock.now());
      const answers = await Promise.all(
        [...senders].map(async ([way, send]) => {
          const end = await send(message, clock.now(), signal);
          events.attempted(way, end);
          return { way, isDelivered: end.isDelivered, answer: end.said };
        }),
      );
      return { answers };
    },
  };
}

function timeOf<N extends string>(name: N, ms: number | undefined) {
  return ms === undefined ? {} : { [name]: timestampFromMs(ms) };
}
