import { expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { manualClock } from "#kit/time/clock.ts";
import { createFairShare, type FairShare, type FairShareBounds } from "./fair-share.ts";

const never = new AbortController().signal;
const settle = () => new Promise((resolve) => setImmediate(resolve));
const bounds: FairShareBounds = { places: 3, each: { places: 2, waiting: 10 }, waitMs: 1_000 };

/** Time does not pass, so requests that still wait at a test's end do not time out. */
const still = () => ({ clock: manualClock() });

/** Asks for places one after the other, and notes in which order they are given. */
function ask(share: FairShare, names: string[], order: string[], size?: number) {
  return names.map((name) =>
    share.take(name, never, size).then((turn) => {
      order.push(name);
      return turn;
    }),
  );
}

test("an account's own bound holds up that account alone", async () => {
  const share = createFairShare(bounds, still());
  const order: string[] = [];
  ask(share, ["a", "a", "a", "a", "b"], order);
  await settle();
  expect(order).toEqual(["a", "a", "b"]);
});

test("accounts take turns, however many requests of one came first", async () => {
  const share = createFairShare(
    { ...bounds, places: 1, each: { places: 1, waiting: 10 } },
    still(),
  );
  const order: string[] = [];
  const all = ask(share, ["a", "a", "a", "a", "b", "b", "c"], order);
  for (const turn of all) {
    await settle();
    void turn.then((held) => held[Symbol.dispose]());
  }
  await Promise.all(all);
  await settle();
  expect(order).toEqual(["a", "a", "b", "c", "a", "b", "a"]);
});

test("a turn is given back once", async () => {
  const share = createFairShare(
    { ...bounds, places: 1, each: { places: 1, waiting: 10 } },
    still(),
  );
  const order: string[] = [];
  const [first] = ask(share, ["a", "b", "c"], order);
  const turn = await first;
  turn?.[Symbol.dispose]();
  turn?.[Symbol.dispose]();
  await settle();
  expect(order).toEqual(["a", "b"]);
});

test("what has no room to wait is refused at once, others of the process are not", async () => {
  const share = createFairShare({ ...bounds, each: { places: 1, waiting: 1 } }, still());
  const order: string[] = [];
  ask(share, ["a", "a", "b"], order);
  await expect(share.take("a", never)).rejects.toMatchObject({
    reason: ErrorReason.RATE_LIMIT_EXCEEDED,
  });
  expect(order).toEqual(["a", "b"]);
});

test("an account that is not known to pay has less", async () => {
  const eachUnpaid = { places: 1, waiting: 0 };
  const share = createFairShare(
    { ...bounds, eachUnpaid },
    { ...still(), isPaying: (id) => id === "paying" },
  );
  const order: string[] = [];
  ask(share, ["free", "paying", "paying"], order);
  await expect(share.take("free", never)).rejects.toMatchObject({
    reason: ErrorReason.RATE_LIMIT_EXCEEDED,
  });
  expect(order).toEqual(["free", "paying", "paying"]);
});

test("who waited too long is told so, the others keep their order", async () => {
  const clock = manualClock();
  const share = createFairShare({ ...bounds, places: 1 }, { clock });
  const turn = await share.take("a", never);
  const late = share.take("b", never);
  const refused = expect(late).rejects.toMatchObject({ reason: ErrorReason.SERVICE_UNAVAILABLE });
  await clock.advance(600);
  const patient = share.take("c", never);
  await clock.advance(600);
  await refused;
  turn[Symbol.dispose]();
  (await patient)[Symbol.dispose]();
});

test("who leaves is not given a place", async () => {
  const share = createFairShare({ ...bounds, places: 1 }, still());
  const turn = await share.take("a", never);
  const caller = new AbortController();
  const left = share.take("b", caller.signal);
  const next = share.take("c", never);
  caller.abort(new Error("left"));
  await expect(left).rejects.toThrow("left");
  await expect(share.take("b", caller.signal)).rejects.toThrow("left");
  turn[Symbol.dispose]();
  (await next)[Symbol.dispose]();
});

test("a large request waits for its room, and small ones do not pass it for ever", async () => {
  const share = createFairShare(
    { places: 10, each: { places: 8, waiting: 10 }, waitMs: 1_000 },
    still(),
  );
  const order: string[] = [];
  const turn = await share.take("a", never, 5);
  const [large] = ask(share, ["large"], order, 100);
  ask(share, ["small"], order, 1);
  await settle();
  expect(order).toEqual([]);
  turn[Symbol.dispose]();
  await settle();
  // The large request is as large as an account's share, and is served before the small one: no request is too large to be served.
  expect(order).toEqual(["large", "small"]);
  (await large)?.[Symbol.dispose]();
});

test("bounds can change while turns are held", async () => {
  const share = createFairShare({ ...bounds, places: 1 }, still());
  const order: string[] = [];
  ask(share, ["a", "b"], order);
  await settle();
  expect(order).toEqual(["a"]);
  share.rebound(bounds);
  await settle();
  expect(order).toEqual(["a", "b"]);
});
