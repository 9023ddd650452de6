// Joins all routes of the operator. The console's index mounts them behind its check of the session.

import type { FastifyInstance } from "fastify";
import type { Edge } from "../../context.ts";
import { accountRoutes } from "./accounts.ts";
import { alertAndWebhookRoutes } from "./alerts-and-webhooks.ts";
import { catalogRoutes } from "./catalog.ts";
import { entryRoutes } from "./entries.ts";
import { keyRoutes } from "./keys.ts";
import { marginRoutes } from "./margins.ts";
import { noticeRoutes } from "./notices.ts";
import { operatorRoutes, ownOperatorRoutes } from "./operators.ts";
import { requestRoutes } from "./requests.ts";
import { systemRoutes } from "./system.ts";
import { upstreamKeyRoutes } from "./upstream-keys.ts";
import { workRoutes } from "./work.ts";

/**
 * The operator's routes, below the prefix of the given app. They add little to the internal API. The console mounts them behind a
 * hook. It lets only operators' sessions in, and asks for the secret again where a route's config requires that.
 */
export function registerAdmin(app: FastifyInstance, edge: Edge): void {
  accountRoutes(app, edge);
  entryRoutes(app, edge);
  alertAndWebhookRoutes(app, edge);
  noticeRoutes(app, edge);
  marginRoutes(app, edge);
  keyRoutes(app, edge);
  requestRoutes(app, edge);
  workRoutes(app, edge);
  catalogRoutes(app, edge);
  upstreamKeyRoutes(app, edge);
  systemRoutes(app, edge);
  operatorRoutes(app, edge);
  ownOperatorRoutes(app, edge);
}
