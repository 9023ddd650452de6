import type { FastifyInstance } from "fastify";
import type { Edge } from "../context.ts";

/** What balancers and probes ask, without a key. Metrics are on the operations port of the process alone. */
export function healthRoutes(app: FastifyInstance, edge: Edge): void {
  app.get("/healthz", { schema: { hide: true } }, async (_request, reply) =>
    reply.type("text/plain; charset=utf-8").send("ok\n"),
  );
  // While draining this says 503 and requests are still served: what sends them needs time to notice.
  app.get("/readyz", { schema: { hide: true } }, async (_request, reply) => {
    const reason = edge.notReady();
    return reply
      .code(reason === undefined ? 200 : 503)
      .type("text/plain; charset=utf-8")
      .send(`${reason ?? "ready"}\n`);
  });
}
