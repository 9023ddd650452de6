import { create } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { FastifyInstance } from "fastify";
import { actionDocument } from "#common/documents/action-document.ts";
import { isoTimeOrNull } from "#common/documents/answer-values.ts";
import { UpstreamProtocol } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import {
  type HistoryFigures,
  HistoryFiguresSchema,
  type UpstreamHealth,
  UpstreamHealthSchema,
} from "#proto/genmesh/text/v1/text_service_pb.ts";
import type { Edge } from "../../context.ts";
import { queryOneOf } from "../../query.ts";
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

/** An upstream fails where this part of its requests ended in errors. The alert GenmeshUpstreamFails has the same threshold. */
export const failingShare = 0.2;
/**
 * An account at an upstream counts as empty for this many milliseconds after it was last found empty. The alert
 * GenmeshUpstreamAccountEmpty uses the same time.
 */
export const emptyForMs = 15 * 60_000;

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
      latencyMs: percentilesOf(seen.p50Ms, seen.p95Ms),
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

function percentilesOf(p50: number | undefined, p95: number | undefined) {
  return p50 === undefined ? null : { p50, p95: p95 ?? p50 };
}

function stateOf({ requests, errors, accountEmptyTime }: UpstreamHealth, nowMs: number) {
  const emptyAtMs = accountEmptyTime ? timestampMs(accountEmptyTime) : 0;
  if (nowMs - emptyAtMs < emptyForMs) return "account_empty";
  if (requests === 0n) return "unknown";
  return Number(errors) / Number(requests) > failingShare ? "failing" : "healthy";
}
