// Builds the auth service from its parts, with the stores of the process's database. The host starts and stops it. From here the host
// also has what auth's stores look like in a database, so that it can open and migrate them.

import type { Ids } from "#kit/base/ids.ts";
import type { Logger } from "#kit/base/logger.ts";
import type { Metrics } from "#kit/base/metrics.ts";
import { rpcService, type Service } from "#kit/rpc/service.ts";
import { createRateBuckets } from "#kit/share/rate-buckets.ts";
import type { Database } from "#kit/store/database.ts";
import type { Clock } from "#kit/time/clock.ts";
import { AuthService } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import { createActionStore } from "./action-store-documents.ts";
import { createAuthEvents } from "./events.ts";
import { maxRateBuckets } from "./limits.ts";
import { createOperatorStore } from "./operator-store-documents.ts";
import { createPasswords, type PasswordCosts } from "./passwords.ts";
import { createAuthRoutes } from "./routes.ts";
import { createSessionStore } from "./session-store-documents.ts";
import { createSignInLimits } from "./sign-in-limits.ts";
import { createSignInLog } from "./sign-in-log.ts";
import type { AuthStore } from "./store.ts";
import { createMongoAuthStore } from "./store-mongo.ts";
import { createSqliteAuthStore } from "./store-sqlite.ts";
import { createKeyChangeFeed, isStale } from "./watch.ts";

export { auditComponent } from "./action-store-documents.ts";
export { operatorComponent } from "./operator-store-documents.ts";
export { sessionComponent } from "./session-store-documents.ts";
export { authMongoSchema } from "./store-mongo-docs.ts";

export interface AuthDeps {
  clock: Clock;
  ids: Ids;
  log: Logger;
  metrics: Metrics;
  database: Database;
  /** Default: those that OWASP recommends. */
  passwordCosts?: PasswordCosts;
}

/** The auth service: accounts, API keys, the console's sessions, operators and their audit log. Gateways hear of changed keys at once. */
export function createAuth(deps: AuthDeps): Service {
  const store = createAuthStore(deps.database);
  const sessions = createSessionStore(deps.database);
  const actions = createActionStore(deps.database);
  const operators = createOperatorStore(deps.database);
  const events = createAuthEvents(deps);
  const feed = createKeyChangeFeed({ store, clock: deps.clock, events });
  // A rate counts for one minute and may be lost. So the memory of one replica is enough, because all gateways ask the same one.
  const rates = createRateBuckets({ clock: deps.clock, maxBuckets: maxRateBuckets });
  // Failed sign-ins count for a minute too, and may be lost as well.
  const signIns = createSignInLimits(deps.clock);
  const signInLog = createSignInLog({ ...deps, actions, trouble: events.lineMissing });
  const routes = createAuthRoutes({
    ...deps,
    store,
    sessions,
    operators,
    passwords: createPasswords({ clock: deps.clock, costs: deps.passwordCosts }),
    signIns,
    signInLog,
    feed,
    events,
    rates,
    actions,
  });
  let started = false;
  return {
    name: "auth",
    rpc: [rpcService(AuthService, routes)],
    async start() {
      await store.open();
      await sessions.open();
      await operators.open();
      await actions.open();
      await feed.start();
      started = true;
    },
    notReady() {
      if (!started) return "auth has not started";
      return isStale(feed) ? "the key store does not answer" : undefined;
    },
    // A watch has no end of its own. Its clients come back at once, to another replica where there is one. In one process they come back
    // here, because the gateway needs its keys until the last request.
    async drain() {
      feed.endWatches();
    },
    async [Symbol.asyncDispose]() {
      await feed[Symbol.asyncDispose]();
      await signInLog[Symbol.asyncDispose]();
    },
  };
}

function createAuthStore(database: Database): AuthStore {
  switch (database.kind) {
    case "sqlite":
      return createSqliteAuthStore(database.sqlite);
    case "mongodb":
      return createMongoAuthStore(database.mongo);
  }
}
