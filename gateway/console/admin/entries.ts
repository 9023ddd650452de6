// The operator's routes for an account's ledger: a page of entries, and an export.

import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import type { FastifyInstance } from "fastify";
import { ledgerEntryDocument } from "#common/documents/entry-document.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { isoMs } from "#kit/base/iso-time.ts";
import type { Edge } from "../../context.ts";
import { exportPage } from "../../limits.ts";
import { exportEntries, exportFormats, exportHeaders, operatorLines } from "../../made-files.ts";
import { takeTurn } from "../../plugins/reads.ts";
import { queryOneOf } from "../../query.ts";
import { type AdminCall, adminRoute, listOf } from "./context.ts";

/** Routes of an account's ledger: a page of its entries, and an export of those that changed a balance. Both only read. */
export function entryRoutes(app: FastifyInstance, edge: Edge): void {
  const url = "/accounts/:accountId/entries";
  adminRoute(app, edge, {
    ...{ method: "GET", url },
    async handle(call) {
      const asked = { accountId: call.param("accountId"), ...call.page() };
      const { entries, nextPageToken } = await call.peers.billing.listEntries(asked, call.options);
      return listOf(entries.map(ledgerEntryDocument), nextPageToken);
    },
  });
  adminRoute(app, edge, {
    ...{ method: "GET", url: `${url}/export` },
    handle: (call) => exported(call, edge),
  });
}

/** Like `genmesh ledger export`: newest first, from `from` on and before `to`. */
async function exported(call: AdminCall, { reads }: Edge) {
  const accountId = call.param("accountId");
  const format = queryOneOf(call.request, "format", exportFormats) ?? "csv";
  const [fromMs, toMs] = [queryTime(call, "from"), queryTime(call, "to")];
  const { auth, billing } = call.peers;
  await auth.getAccount({ accountId }, call.options);
  const page = async (place: {
    after?: string;
    untilTime?: ReturnType<typeof timestampFromMs>;
  }) => {
    using _turn = await takeTurn(reads, accountId, call.options.signal);
    const asked = { accountId, onlyMoney: true, pageSize: exportPage, forOperator: true, ...place };
    return await billing.listLines(asked, call.options);
  };
  // This page is read before the headers are sent, so that an error has its own status.
  const first = await page(toMs === undefined ? {} : { untilTime: timestampFromMs(toMs) });
  exportHeaders(call.reply, format, `entries-${accountId}`);
  return exportEntries(
    format,
    first,
    (after) => page({ after }),
    ({ time }) => fromMs === undefined || !time || timestampMs(time) >= fromMs,
    operatorLines,
  );
}

/** Milliseconds of a time in the query. */
function queryTime(call: AdminCall, name: string): number | undefined {
  const text = call.query(name);
  if (text === "") return undefined;
  return isoMs(text) ?? refuse(ErrorReason.INVALID_VALUE, { param: name });
}
