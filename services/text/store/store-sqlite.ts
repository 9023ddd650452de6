// The store of running requests in SQLite, for a single process. `store.ts` says what each method promises.

import { longestDueMs } from "#common/paid-work/limits.ts";
import type { SqliteDatabase, SqlRow, SqlRunner, SqlValue } from "#kit/store/sqlite.ts";
import { keptCountMs, longestReviewMs } from "../base/limits.ts";
import type { Closer, Closing, Intent, UsageStore } from "./store.ts";
import {
  chargeText,
  keyedOf,
  makerOf,
  morePricesText,
  recordOf,
  reviewOf,
  schemaName,
  textSchema,
  toldText,
} from "./store-sqlite-rows.ts";

/**
 * The store in SQLite. Each transition is one transaction, and transactions of one turn of the event loop share a commit. One
 * process has the file, so a compare-and-set is an UPDATE with a condition.
 */
export function createSqliteUsageStore(db: SqliteDatabase): UsageStore {
  return {
    prepare: async () => db.migrate(schemaName, textSchema),
    open: (intent) => db.write((tx) => insert(tx, intent)),
    checkpoint: (requestId, owner, seen) =>
      db.write(
        (tx) =>
          tx.run(
            checkpointSql,
            seen.inputTokens,
            seen.outputTokens,
            seen.leaseUntil,
            toldText(seen.told),
            requestId,
            owner,
          ) === 1,
      ),
    close: (requestId, closer, closing, at) =>
      db.write((tx) => close(tx, requestId, closer, closing, at)),
    finish: (requestId, keepUntil, charged) =>
      db.write(
        (tx) => {
          if (tx.run(finishSql, requestId) > 0) return;
          tx.run(finishKeptSql, keepUntil, `${charged}`, requestId);
        },
        { lazy: true },
      ),
    withdraw: async (requestId, owner) => {
      await db.write((tx) => tx.run(withdrawSql, requestId, owner));
    },
    defer: async (requestId, dueAt) => {
      await db.write((tx) => tx.run(deferSql, dueAt, requestId));
    },
    countKept: (accountId, bytes, { now, until, most }) =>
      db.write((tx) => {
        const kept = Number(tx.get(keptSql, accountId, now, until + keptCountMs)?.bytes ?? 0);
        if (kept + bytes > most) return false;
        tx.run(countKeptSql, accountId, until, bytes);
        return true;
      }),
    find: async (requestId) => {
      const row = db.get("SELECT * FROM text_usage WHERE request_id = ?", requestId);
      return row && recordOf(row);
    },
    findByKey: async (slot, now) => {
      const row = db.get(byKeySql, slot.keyId, slot.operation, slot.key);
      if (!row || (row.status === "closed" && Number(row.due_at) <= now)) return undefined;
      return keyedOf(row);
    },
    due: async (now, limit) => db.all(dueSql, now, limit).map(recordOf),
    bringForward: async (now, at) => {
      // Such work is rare. Without it no transaction begins.
      const after = [now + longestDueMs, now + longestReviewMs];
      if (!db.get(isPutOffSql, ...after)) return;
      await db.write((tx) => tx.run(bringForwardSql, at, ...after));
    },
    noteReview: async (review, until) => {
      const { requestId, accountId, modelId, reported, charged, at } = review;
      const values = [requestId, accountId, modelId, reported, charged ?? 0n, at, until];
      await db.write((tx) => tx.run(noteReviewSql, ...values));
    },
    reviews: async (accountId, limit) => db.all(reviewsSql, accountId ?? null, limit).map(reviewOf),
    rememberMakers: (makers, until) =>
      db.write((tx) => {
        for (const { hash, accountId, upstream } of makers) {
          tx.run(rememberSql, hash, accountId, upstream, until);
        }
      }),
    findMakers: async (hashes, now) =>
      db.all(findMakersSql, JSON.stringify(hashes), now).map(makerOf),
    eraseKept: (keyIds, limit) =>
      db.write((tx) => {
        const rows = tx.all(keptOfSql, JSON.stringify(keyIds), limit);
        for (const { request_id } of rows) forgetAnswer(tx, String(request_id));
        return rows.length;
      }),
    forget: (now, limit) =>
      db.write(
        (tx) =>
          forgetAnswers(tx, now, limit) +
          tx.run(forgetMakersSql, now, limit) +
          tx.run(forgetReviewsSql, now, limit) +
          tx.run(forgetKeptSql, now, limit),
      ),
  };
}

const insertSql = `INSERT INTO text_usage (request_id, account_id, key_id, operation, model_id, catalog_version,
  price_input, price_cached, price_output, bound_input, bound_output, hold_amount, hold_check_at, owner, opened_at,
  status, dispatched, input_tokens, output_tokens, due_at, idem_key, fingerprint, told,
  price_more, counted_audio, counted_images)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'open', 1, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`;
const checkpointSql = `UPDATE text_usage SET input_tokens = ?, output_tokens = ?, due_at = ?, told = coalesce(?, told)
  WHERE request_id = ? AND owner = ? AND status = 'open'`;
const finishKeptSql = `UPDATE text_usage SET status = 'closed', due_at = ?, charge = json_set(charge, '$.amount', ?)
  WHERE request_id = ? AND status IN ('settling', 'review') AND idem_key IS NOT NULL`;
const finishSql = `DELETE FROM text_usage
  WHERE request_id = ? AND status IN ('open', 'settling', 'review') AND idem_key IS NULL`;
const withdrawSql = `DELETE FROM text_usage WHERE request_id = ? AND owner = ? AND status = 'open'`;
const deferSql = `UPDATE text_usage SET due_at = ? WHERE request_id = ? AND status IN ('settling', 'review')`;
const byKeySql = `SELECT u.request_id, u.fingerprint, u.status, u.due_at, u.charge, u.told, a.body, a.ignored FROM text_usage u
  LEFT JOIN text_answer a ON a.request_id = u.request_id
  WHERE u.key_id = ? AND u.operation = ? AND u.idem_key = ?`;
const dueSql = `SELECT * FROM text_usage WHERE due_at <= ? AND status <> 'closed' ORDER BY due_at LIMIT ?`;
const putOffSql = "due_at > ? AND status <> 'closed' AND (status <> 'review' OR due_at > ?)";
const isPutOffSql = `SELECT 1 FROM text_usage WHERE ${putOffSql} LIMIT 1`;
const bringForwardSql = `UPDATE text_usage SET due_at = ? WHERE ${putOffSql}`;
const noteReviewSql = `INSERT INTO text_review (request_id, account_id, model_id, reported, charged, at, until)
  VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`;
// Reviews of earlier versions are in the rows of their requests.
const reviewsSql = `SELECT * FROM (
    SELECT request_id, account_id, model_id, reported, charged, at FROM text_review
    UNION ALL
    SELECT request_id, account_id, model_id, reported, NULL, closed_at FROM text_usage WHERE status = 'review'
  ) WHERE ?1 IS NULL OR account_id = ?1 ORDER BY at, request_id LIMIT ?2`;
const rememberSql = `INSERT INTO text_opaque (hash, account_id, upstream, until) VALUES (?, ?, ?, ?)
  ON CONFLICT DO UPDATE SET upstream = excluded.upstream, until = excluded.until`;
const findMakersSql = `SELECT hash, account_id, upstream FROM text_opaque
  WHERE hash IN (SELECT value FROM json_each(?)) AND until > ?`;
const keptOfSql = `SELECT request_id FROM text_usage WHERE key_id IN (SELECT value FROM json_each(?))
  AND idem_key IS NOT NULL AND status = 'closed' LIMIT ?`;
const keptSql =
  "SELECT sum(bytes) AS bytes FROM text_kept WHERE account_id = ? AND until > ? AND until <= ?";
const countKeptSql = `INSERT INTO text_kept (account_id, until, bytes) VALUES (?, ?, ?)
  ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes`;
const forgetKeptSql = `DELETE FROM text_kept WHERE (account_id, until) IN
  (SELECT account_id, until FROM text_kept WHERE until <= ? LIMIT ?)`;
const forgetReviewsSql = `DELETE FROM text_review WHERE request_id IN
  (SELECT request_id FROM text_review WHERE until <= ? LIMIT ?)`;
const forgetMakersSql = `DELETE FROM text_opaque WHERE (hash, account_id) IN
  (SELECT hash, account_id FROM text_opaque WHERE until <= ? LIMIT ?)`;

function insert(tx: SqlRunner, intent: Intent): boolean {
  const values = intentValues(intent);
  if (tx.run(insertSql, ...values) === 1) return true;
  // The conflict was with the intent itself, with another request in its slot, or with an answer whose time has ended.
  if (tx.get("SELECT 1 FROM text_usage WHERE request_id = ?", intent.requestId)) return true;
  const { keyId, operation, idempotency, openedAt } = intent;
  const old = tx.get(byKeySql, keyId, operation, idempotency?.key ?? null);
  if (old?.status !== "closed" || Number(old.due_at) > openedAt) return false;
  forgetAnswer(tx, String(old.request_id));
  return tx.run(insertSql, ...values) === 1;
}

function intentValues(intent: Intent): SqlValue[] {
  const { price, bounds, idempotency } = intent;
  return [
    intent.requestId,
    intent.accountId,
    intent.keyId,
    intent.operation,
    intent.modelId,
    intent.catalogVersion,
    price.input,
    price.cachedInput,
    price.output,
    bounds.input,
    bounds.output,
    intent.holdAmount,
    intent.holdCheckAt,
    intent.owner,
    intent.openedAt,
    intent.inputTokens,
    intent.outputTokens,
    intent.leaseUntil,
    idempotency?.key ?? null,
    idempotency?.fingerprint ?? null,
    toldText(intent.told),
    morePricesText(price),
    bounds.countedAudio ?? null,
    bounds.countedImages ?? null,
  ];
}

const closeSql = `UPDATE text_usage SET status = ?, end_kind = ?, charge = ?, closed_at = ?, due_at = ?,
  told = coalesce(?, told), idem_key = CASE WHEN ? THEN idem_key END WHERE request_id = ? AND status = 'open' AND `;
const closeOwnSql = `${closeSql}owner = ?`;
const closeOrphanSql = `${closeSql}due_at <= ?`;

function close(
  tx: SqlRunner,
  requestId: string,
  closer: Closer,
  closing: Closing,
  at: { now: number; dueAt: number },
): boolean {
  const { kind, end, answer, ignored } = closing;
  const values = [
    kind,
    end,
    chargeText(closing.charge),
    at.now,
    at.dueAt,
    toldText(closing.told),
    answer === undefined ? 0 : 1,
    requestId,
  ];
  const closed =
    "owner" in closer
      ? tx.run(closeOwnSql, ...values, closer.owner)
      : tx.run(closeOrphanSql, ...values, closer.leaseOverAt);
  if (closed === 1 && answer instanceof Uint8Array) {
    tx.run(
      `INSERT INTO text_answer (request_id, body, ignored)
       SELECT request_id, ?, ? FROM text_usage WHERE request_id = ? AND idem_key IS NOT NULL`,
      answer,
      ignored ? JSON.stringify(ignored) : null,
      requestId,
    );
  }
  return closed === 1;
}

function forgetAnswers(tx: SqlRunner, now: number, limit: number): number {
  const rows: SqlRow[] = tx.all(
    `SELECT request_id FROM text_usage WHERE due_at <= ? AND status = 'closed' LIMIT ?`,
    now,
    limit,
  );
  for (const { request_id } of rows) forgetAnswer(tx, String(request_id));
  return rows.length;
}

function forgetAnswer(tx: SqlRunner, requestId: string): void {
  tx.run("DELETE FROM text_answer WHERE request_id = ?", requestId);
  tx.run("DELETE FROM text_usage WHERE request_id = ?", requestId);
}
