import type { FastifyInstance } from "fastify";
import { actionDocument } from "#common/documents/action-document.ts";
import { upstreamDocuments } from "#common/documents/upstream-document.ts";
import type { Edge } from "../../context.ts";
import { snapshotOf } from "./catalog.ts";
import { type AdminCall, adminRoute, listOf } from "./context.ts";

/** Routes for the state of the whole installation: the upstreams' health and the audit log. */
export function systemRoutes(app: FastifyInstance, edge: Edge): void {
  const get = (url: string, handle: (call: AdminCall) => Promise<unknown>) =>
    adminRoute(app, edge, { method: "GET", url, handle });
  get("/upstreams", upstreams);
  adminRoute(app, edge, { method: "POST", url: "/upstreams/:name/probe", handle: probe });
  get("/audit", async (call) => {
    const asked = { ...call.page(), accountId: call.query("account") };
    const { actions, nextPageToken } = await call.peers.auth.listActions(asked, call.options);
    return listOf(actions.map(actionDocument), nextPageToken);
  });
}

/** Asks an upstream, with its key, which models it has. It changes nothing and generates nothing. */
async function probe(call: AdminCall) {
  const told = await call.peers.text.probeUpstream({ name: call.param("name") }, call.options);
  const { hasList, listFault, listedModels, listed, models, faults, durationMs } = told;
  return {
    object: "upstream.probe",
    ok: listFault === "" && faults.length === 0,
    list: hasList ? { fault: listFault || null, models: listedModels, count: listed } : null,
    models,
    faults: faults.map(({ model, message }) => ({ model, message })),
    durationMs,
  };
}

/** Every upstream of the catalog, with the observations of all processes. */
async function upstreams(call: AdminCall) {
  const [snapshot, health] = await Promise.all([
    snapshotOf(call),
    call.peers.text.listUpstreamHealth({}, call.options),
  ]);
  const documents = upstreamDocuments(snapshot, health, call.clock.now());
  return { ...listOf(documents), processes: health.processes };
}
