import type { FastifyInstance } from "fastify";
import { accountRoutes } from "./accounts.ts";
import type { AdminDeps } from "./context.ts";
import { entryRoutes } from "./entries.ts";
import { keyRoutes } from "./keys.ts";
import { noticeRoutes } from "./notices.ts";
import { systemRoutes } from "./system.ts";
import { workRoutes } from "./work.ts";

export type { AdminDeps } from "./context.ts";

/**
 * The operator's routes, below the prefix of the app that is given: thin over the internal API. The console mounts them
 * behind a hook that lets operators' sessions in alone, and asks for the secret again where a route's config says so.
 */
export function registerAdmin(app: FastifyInstance, deps: AdminDeps): void {
  accountRoutes(app, deps);
  entryRoutes(app, deps);
  noticeRoutes(app, deps);
  keyRoutes(app, deps);
  workRoutes(app, deps);
  systemRoutes(app, deps);
}
