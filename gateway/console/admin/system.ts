// The operator's routes for the whole installation: health of upstreams, and the audit log.

import { create } from "@bufbuild/protobuf";
import type { FastifyInstance } from "fastify";
import { actionDocument } from "#common/documents/action-document.ts";
import { percentilesOf, upstreamDocuments } from "#common/documents/upstream-document.ts";
import {
  type HistoryFigures,
  HistoryFiguresSchema,
} from "#proto/genmesh/text/v1/text_service_pb.ts";
import type { Edge } from "../../context.ts";
import { queryOneOf } from "../../query.ts";
import { namedListOf } from "./account-names.ts";
import { snapshotOf } from "./catalog.ts";
import { type AdminCall, adminRoute, listOf } from "./context.ts";

/** Routes for the state of the whole installation: the upstreams' health and the audit log. */
export function systemRoutes(app: FastifyInstance, edge: Edge): void {
  const get = (url: string, handle: (call: AdminCall) => Promise<unknown>) =>
    adminRoute(app, edge, { method: "GET", url, handle });
  get("/upstreams", upstreams);
  get("/upstreams/history", history);
  adminRoute(app, edge, { method: "POST", url: "/upstreams/:name/probe", handle: probe });
  get("/audit", async (call) => {
    const asked = { ...call.page(), accountId: call.query("account") };
    const { actions, nextPageToken } = await call.peers.auth.listActions(asked, call.options);
    return namedListOf(call, actions.map(actionDocument), nextPageToken);
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

/** Hours of each time that can be asked for. */
const ranges: Readonly<Record<string, number>> = { day: 24, week: 7 * 24 };

/** Upstreams that were asked in the last day or week, and how they did in each hour, with the observations of all processes. */
async function history(call: AdminCall) {
  const hours = queryOneOf(call.request, "range", ranges) ?? 24;
  const { upstreams } = await call.peers.text.listUpstreamHistory({ hours }, call.options);
  return listOf(
    upstreams.map(({ name, all, models, hours }) => ({
      object: "upstream.history",
      name,
      ...figuresOf(all),
      models: models.map(({ id, figures }) => ({ id, ...figuresOf(figures) })),
      hours: hours.map(({ startSeconds, requests, errors }) => ({
        start: startSeconds,
        ...{ requests, errors },
      })),
    })),
  );
}

function figuresOf(figures: HistoryFigures = create(HistoryFiguresSchema)) {
  const { requests, errors, errorKinds, firstP50Ms, firstP95Ms, p50Ms, p95Ms } = figures;
  return {
    ...{ requests, errors, errorKinds },
    errorRate: requests === 0n ? 0 : Number(errors) / Number(requests),
    firstOutputMs: percentilesOf(firstP50Ms, firstP95Ms),
    latencyMs: percentilesOf(p50Ms, p95Ms),
  };
}
