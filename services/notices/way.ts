// Decides what goes to an operator next by webhook or mail, and when a failed attempt is repeated. It is pure: `index.ts` makes
// the steps in the store.

import { createHash } from "node:crypto";
import {
  attemptLeaseMs,
  betweenMessagesMs,
  maxToldAtOnce,
  pausesMs,
  toldAgainMs,
} from "./limits.ts";
import type { Notice } from "./notice.ts";

/** The ways to tell an operator. */
export type WayName = "webhook" | "mail";

/** A notice in a message. Times are ms since the epoch. */
export interface Told {
  noticeId: string;
  kind: string;
  subject: string;
  beganAt: number;
  what: "began" | "lasts" | "ended";
}

/** A message: the same at every attempt. */
export interface Message {
  messageId: string;
  at: number;
  notices: readonly Told[];
}

/**
 * A way and all that it has told, in one document. So the end of an attempt and what it told are one write, and one process at a time
 * makes an attempt. Times are ms since the epoch.
 */
export interface Way {
  way: WayName;
  /** Notices that were told and have not been told as ended. `at`: when they were last told. */
  told: readonly (Omit<Told, "what"> & { at: number })[];
  /** The message that is under way. */
  sending?: Message | undefined;
  /** When the next attempt may begin. During an attempt: when it counts as lost. */
  dueAt: number;
  /** Attempts that failed in a row. */
  failures: number;
  lastAttemptAt?: number | undefined;
  /** The status that the last attempt's receiver answered, or a word for the fault. */
  lastAnswer?: string | undefined;
  lastDeliveredAt?: number | undefined;
}

/** A way that has told nothing. */
export function newWay(way: WayName): Way {
  return { way, told: [], dueAt: 0, failures: 0 };
}

/**
 * The way with an attempt begun, where one is due and there is something to tell. An attempt repeats the message that is under way.
 * `lasting`: the notices that last now.
 */
export function attemptBegun(way: Way, lasting: readonly Notice[], now: number): Way | undefined {
  if (now < way.dueAt) return undefined;
  const sending = way.sending ?? nextMessage(way, lasting, now);
  if (!sending) return undefined;
  return { ...way, sending, dueAt: now + attemptLeaseMs, lastAttemptAt: now };
}

/** The end of an attempt. `answer`: a status, or a word for the fault. */
export interface AttemptEnd {
  isDelivered: boolean;
  answer: string;
}

/** The way after the end of an attempt to send a message. Undefined: that message is no longer under way. */
export function attemptEnded(
  way: Way,
  messageId: string,
  { isDelivered, answer }: AttemptEnd,
  now: number,
): Way | undefined {
  const { sending } = way;
  if (sending?.messageId !== messageId) return undefined;
  const ended = { ...way, lastAnswer: answer };
  if (!isDelivered) {
    const failures = way.failures + 1;
    const pauseMs = pausesMs[Math.min(failures, pausesMs.length) - 1] ?? 0;
    return { ...ended, failures, dueAt: now + pauseMs };
  }
  const ids = new Set(sending.notices.map(({ noticeId }) => noticeId));
  const again = sending.notices.filter(({ what }) => what !== "ended");
  const told = [
    ...way.told.filter(({ noticeId }) => !ids.has(noticeId)),
    ...again.map(({ what: _, ...one }) => ({ ...one, at: now })),
  ];
  const { sending: _, ...rest } = ended;
  return { ...rest, told, failures: 0, lastDeliveredAt: now, dueAt: now + betweenMessagesMs };
}

/** The notices that are to be told now, at most {@link maxToldAtOnce} notices. Undefined: nothing. */
function nextMessage({ way, told }: Way, lasting: readonly Notice[], now: number) {
  const before = new Map(told.map((one) => [one.noticeId, one]));
  const open = new Set(lasting.map(({ noticeId }) => noticeId));
  const notices: Told[] = told
    .filter(({ noticeId }) => !open.has(noticeId))
    .map(({ at: _, ...one }) => ({ ...one, what: "ended" }));
  for (const { noticeId, kind, subject, beganAt } of lasting) {
    const known = before.get(noticeId);
    const what = known?.beganAt === beganAt ? "lasts" : "began";
    if (known && what === "lasts" && now - known.at < toldAgainMs) continue;
    notices.push({ noticeId, kind, subject, beganAt, what });
  }
  if (notices.length === 0) return undefined;
  const some = notices.slice(0, maxToldAtOnce);
  const facts = JSON.stringify([way, now, some]);
  const hash = createHash("sha256").update(facts).digest("hex").slice(0, 24);
  return { messageId: `evt_${hash}`, at: now, notices: some };
}
