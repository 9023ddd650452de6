import type { Database } from "#kit/database.ts";
import { createRateBuckets } from "#kit/rate-buckets.ts";
import { rpcService, type Service } from "#kit/rpc/service.ts";
import { AuthService } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import type { AuthDeps } from "./context.ts";
import { createAuthEvents } from "./events.ts";
import { maxRateBuckets } from "./limits.ts";
import { createAuthRoutes } from "./routes.ts";
import type { AuthStore } from "./store.ts";
import { createMongoAuthStore } from "./store-mongo.ts";
import { createSqliteAuthStore } from "./store-sqlite.ts";
import { createKeyChangeFeed, isStale } from "./watch.ts";

export type { AuthDeps } from "./context.ts";
export { authMongoSchema } from "./store-mongo-schema.ts";

/** Accounts and their API keys: makes, rotates and revokes them, and tells the gateways at once. */
export function createAuth(deps: AuthDeps): Service {
  const store = openStore(deps.database);
  const events = createAuthEvents(deps);
  const feed = createKeyChangeFeed({ store, clock: deps.clock, events });
  // A rate is no truth that must outlive its minute: the memory of the replica that all gateways ask will do.
  const rates = createRateBuckets({ clock: deps.clock, maxBuckets: maxRateBuckets });
  let started = false;
  return {
    name: "auth",
    rpc: [rpcService(AuthService, createAuthRoutes({ ...deps, store, feed, events, rates }))],
    async start() {
      await store.open();
      await feed.start();
      started = true;
    },
    notReady() {
      if (!started) return "auth has not started";
      return isStale(feed) ? "the key store does not answer" : undefined;
    },
    // A watch has no end of its own. Its clients come back at once, to a replica that stays where there is one; in one
    // process they come back here, for the edge needs its keys to the last request.
    async drain() {
      feed.endWatches();
    },
    [Symbol.asyncDispose]: () => feed[Symbol.asyncDispose](),
  };
}

function openStore(database: Database): AuthStore {
  switch (database.kind) {
    case "sqlite":
      return createSqliteAuthStore(database.sqlite);
    case "mongodb":
      return createMongoAuthStore(database.mongo);
  }
}
