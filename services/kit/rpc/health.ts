// The health service of gRPC, for platforms that probe the gRPC port.

import { setTimeout as delay } from "node:timers/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  Health,
  HealthCheckResponse_ServingStatus as Status,
} from "#proto/grpc/health/v1/health_pb.ts";
import { type RpcService, rpcService } from "./service.ts";

/** Milliseconds between two checks for a watcher. */
const watchIntervalMs = 500;

/** Watches that are open at once. They need no token, and a platform has one or two. */
export const maxHealthWatches = 64;

/** `grpc.health.v1.Health` for the given services. `notReady` is that of Service. */
export function healthService(
  services: readonly RpcService[],
  notReady: () => string | undefined,
): RpcService {
  const known = new Set(["", ...services.map((one) => one.desc.typeName)]);
  const status = () => (notReady() === undefined ? Status.SERVING : Status.NOT_SERVING);
  let watches = 0;
  return rpcService(Health, {
    check(req) {
      if (!known.has(req.service)) throw new ConnectError("unknown service", Code.NotFound);
      return { status: status() };
    },
    async *watch(req, context) {
      if (watches >= maxHealthWatches) {
        throw new ConnectError("too many watches", Code.ResourceExhausted);
      }
      watches++;
      try {
        let last: Status | undefined;
        while (!context.signal.aborted) {
          const now = known.has(req.service) ? status() : Status.SERVICE_UNKNOWN;
          if (now !== last) yield { status: now };
          last = now;
          await delay(watchIntervalMs, undefined, { signal: context.signal }).catch(() => {});
        }
      } finally {
        watches--;
      }
    },
  });
}
