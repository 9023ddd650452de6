import { create } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { FastifyInstance } from "fastify";
import { actionDocument } from "#common/documents/action-document.ts";
import { isoTimeOrNull } from "#common/documents/answer-values.ts";
import { UpstreamProtocol } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import {
  type UpstreamHealth,
  UpstreamHealthSchema,
} from "#proto/genmesh/text/v1/text_service_pb.ts";
import { emptyForMs, failingShare } from "../../../services/upstreams/health/figures.ts";
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

/** The name of an enum's value, in lower case. */
function enumName(names: Readonly<Record<string, number>>, value: number): string {
  return (
    Object.keys(names)
      .find((name) => names[name] === value)
      ?.toLowerCase() ?? ""
  );
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
  const figures = new Map(health.upstreams.map((one) => [one.name, one]));
  const documents = Object.values(snapshot.upstreams).map((upstream) => {
    const seen = figures.get(upstream.name) ?? create(UpstreamHealthSchema);
    const [requests, errors] = [Number(seen.requests), Number(seen.errors)];
    return {
      object: "upstream",
      name: upstream.name,
      protocol: enumName(UpstreamProtocol, upstream.protocol),
      state: stateOf(seen, call.clock.now()),
      ...{ requests, errors, errorRate: requests === 0 ? 0 : errors / requests },
      latencyMs:
        seen.p50Ms === undefined ? null : { p50: seen.p50Ms, p95: seen.p95Ms ?? seen.p50Ms },
      inFlight: seen.inFlight,
      busiest: seen.busiest,
      slots: upstream.maxConcurrent || null,
      lastError: seen.lastError || null,
      accountEmptyAt: isoTimeOrNull(seen.accountEmptyTime),
      resting: seen.resting,
      models: snapshot.models
        .filter((one) => [one.upstream, ...one.fallbackUpstreams].includes(upstream.name))
        .map(({ id }) => id),
    };
  });
  const sorted = documents.sort((a, b) => (a.name < b.name ? -1 : 1));
  return { ...listOf(sorted), processes: health.processes };
}

function stateOf({ requests, errors, accountEmptyTime }: UpstreamHealth, nowMs: number) {
  const emptyAtMs = accountEmptyTime ? timestampMs(accountEmptyTime) : 0;
  if (nowMs - emptyAtMs < emptyForMs) return "account_empty";
  if (requests === 0n) return "unknown";
  return Number(errors) / Number(requests) > failingShare ? "failing" : "healthy";
}
