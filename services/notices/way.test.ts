import { expect, test } from "vitest";
import { attemptLeaseMs, betweenMessagesMs, maxToldAtOnce, toldAgainMs } from "./limits.ts";
import { type Notice, unseen } from "./notice.ts";
import { attemptBegun, attemptEnded, newWay, type Way } from "./way.ts";

const start = 1_000_000;
const notice = (store: string, beganAt = start): Notice => ({
  ...unseen({ kind: "store_away", subject: store }),
  ...{ beganAt, seenAt: beganAt },
});
const delivered = { isDelivered: true, answer: "204" };
const failed = { isDelivered: false, answer: "unreachable" };

/** What is told at a time, and the way after that. */
function told(way: Way, lasting: readonly Notice[], now: number) {
  const begun = attemptBegun(way, lasting, now);
  if (!begun?.sending) return { way, said: [] };
  const { messageId, notices } = begun.sending;
  const after = attemptEnded(begun, messageId, delivered, now) ?? begun;
  return { way: after, said: notices.map(({ what, subject }) => `${what} ${subject}`) };
}

test("a notice is told when it begins, once a day while it lasts, and when it has ended", () => {
  const lasting = [notice("blobs")];
  let { way, said } = told(newWay("mail"), lasting, start);
  expect(said).toEqual(["began blobs"]);
  const at = (now: number, open: readonly Notice[]) => {
    ({ way, said } = told(way, open, start + now));
    return said;
  };
  expect(at(toldAgainMs - 1, lasting)).toEqual([]);
  expect(at(toldAgainMs, lasting)).toEqual(["lasts blobs"]);
  expect(at(toldAgainMs * 2 - 1, lasting)).toEqual([]);
  expect(at(toldAgainMs * 2, lasting)).toEqual(["lasts blobs"]);
  expect(at(toldAgainMs * 3 - 1, [])).toEqual(["ended blobs"]);
  expect(at(toldAgainMs * 9, [])).toEqual([]);
  expect(way.told).toEqual([]);
  // It is another one when it begins again, also where its end was not told in between.
  expect(at(toldAgainMs * 10, [notice("blobs", start + 5)])).toEqual(["began blobs"]);
  expect(at(toldAgainMs * 10 + betweenMessagesMs, [notice("blobs", start + 9)])).toEqual([
    "began blobs",
  ]);
});

test("a message has a bounded number of notices, and the next one has the others after a pause", () => {
  const lasting = Array.from({ length: maxToldAtOnce + 1 }, (_, i) => notice(`disk-${i}`));
  const first = told(newWay("webhook"), lasting, start);
  expect(first.said).toHaveLength(maxToldAtOnce);
  expect(told(first.way, lasting, start + betweenMessagesMs - 1).said).toEqual([]);
  const second = told(first.way, lasting, start + betweenMessagesMs);
  expect(second.said).toEqual([`began disk-${maxToldAtOnce}`]);
});

test("an attempt that fails or is lost is made again with the same message, with pauses up to an hour", () => {
  let way = attemptBegun(newWay("webhook"), [notice("blobs")], start) as Way;
  const first = way.sending;
  expect(attemptBegun(way, [], start + attemptLeaseMs - 1)).toBeUndefined();
  let now = start + attemptLeaseMs;
  const pauses: number[] = [];
  for (let i = 0; i < 8; i++) {
    way = attemptBegun(way, [notice("other")], now) as Way;
    expect(way.sending).toEqual(first);
    way = attemptEnded(way, first?.messageId ?? "", failed, now) as Way;
    expect(way).toMatchObject({ failures: i + 1, lastAnswer: "unreachable", told: [] });
    pauses.push((way.dueAt - now) / 1_000);
    now = way.dueAt;
  }
  expect(pauses).toEqual([5, 30, 120, 600, 1_800, 3_600, 3_600, 3_600]);
  const late = attemptBegun(way, [], now) as Way;
  const done = attemptEnded(late, first?.messageId ?? "", delivered, now) as Way;
  expect(done).toMatchObject({ failures: 0, lastDeliveredAt: now, told: [{ subject: "blobs" }] });
  expect(done.sending).toBeUndefined();
  // The end of an attempt that another process has overtaken changes nothing.
  expect(attemptEnded(done, first?.messageId ?? "", failed, now)).toBeUndefined();
});
