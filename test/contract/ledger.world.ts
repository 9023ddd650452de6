import { createClient } from "@connectrpc/connect";
import { randomIds } from "#kit/base/ids.ts";
import { createLogger } from "#kit/base/logger.ts";
import { createMetrics } from "#kit/base/metrics.ts";
import { accessInterceptor, tokenInterceptor } from "#kit/rpc/access.ts";
import { createDirectTransport } from "#kit/rpc/direct-transport.ts";
import { serverErrorInterceptor } from "#kit/rpc/interceptors.ts";
import type { RpcService } from "#kit/rpc/service.ts";
import type { Database } from "#kit/store/database.ts";
import { openSqlite } from "#kit/store/sqlite.ts";
import { manualClock } from "#kit/time/clock.ts";
import { BillingService } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { MediaService } from "#proto/genmesh/media/v1/media_service_pb.ts";
import { TextService } from "#proto/genmesh/text/v1/text_service_pb.ts";
import { createBilling } from "../../services/billing/index.ts";

/** An owner's answer about a hold. An owner refuses by throwing. */
export type Verdict =
  | { case: "keepUntil"; value: { seconds: bigint; nanos: number } }
  | { case: "settleAmount"; value: bigint }
  | { case: "release"; value: boolean }
  | { case: undefined };

/** Owners of holds whose answers the test sets. */
export interface Owners {
  text: (holdId: string) => Verdict | Promise<Verdict>;
  media: (holdId: string) => Verdict | Promise<Verdict>;
  /** "text hold_id" for each question. */
  asked: string[];
}

/** The billing service on a database in memory, or on the given one, with the interceptors of a mesh and the test's owners. */
export async function billingWorld(given?: Database) {
  const clock = manualClock();
  const sqlite = openSqlite(":memory:");
  const metrics = createMetrics();
  const lines: string[] = [];
  const log = createLogger("debug", { write: (line) => void lines.push(line) });
  const owners: Owners = {
    text: () => ({ case: "release", value: true }),
    media: () => ({ case: "release", value: true }),
    asked: [],
  };
  const ask = (owner: "text" | "media") => ({
    resolveHold: async ({ holdId }: { holdId: string }) => {
      owners.asked.push(`${owner} ${holdId}`);
      return { verdict: { verdict: await owners[owner](holdId) } };
    },
  });
  const served: RpcService[] = [
    { desc: TextService, impl: ask("text") },
    { desc: MediaService, impl: ask("media") },
  ];
  const transport = (token: string) =>
    createDirectTransport({
      services: () => served,
      clientInterceptors: [tokenInterceptor(token)],
      serverInterceptors: [
        serverErrorInterceptor({ log, ids: randomIds }),
        accessInterceptor({ mesh: ["mesh"], admin: "admin" }),
      ],
    });
  const mesh = transport("mesh");
  const service = createBilling({
    clock,
    ids: randomIds,
    log,
    metrics,
    database: given ?? { kind: "sqlite", sqlite },
    peers: { text: createClient(TextService, mesh), media: createClient(MediaService, mesh) },
  });
  served.push(...service.rpc);
  await service.start();
  return {
    clock,
    metrics,
    owners,
    service,
    sqlite,
    /** A service's client. */
    billing: createClient(BillingService, mesh),
    /** The operator's client. */
    operator: createClient(BillingService, transport("admin")),
    /** The lines of the log, in JSON. */
    lines,
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]();
      sqlite[Symbol.dispose]();
    },
  };
}
