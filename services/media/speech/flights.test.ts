import { expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { createFlights } from "./flights.ts";

const never = () => new AbortController().signal;

test("everybody who joins gets what the first began, or its failure", async () => {
  const flights = createFlights<number>();
  const end = Promise.withResolvers<number>();
  const named = { name: "a", fingerprint: "f" };
  const first = flights.lead(named, never(), () => end.promise).ended;
  const second = flights.join("a", "f", never())?.ended;
  expect(() => flights.join("a", "other", never())).toThrow(
    expect.objectContaining({ reason: ErrorReason.IDEMPOTENCY_KEY_REUSED }),
  );
  end.resolve(7);
  expect(await Promise.all([first, second])).toEqual([7, 7]);
  await flights.idle();
  expect(flights.join("a", "f", never())).toBeUndefined();
  const failing = flights.lead(named, never(), () => Promise.reject(new Error("no"))).ended;
  const joined = flights.join("a", "f", never())?.ended;
  await expect(failing).rejects.toThrow("no");
  await expect(joined).rejects.toThrow("no");
});

test("the work is aborted by the last caller who leaves, and none joins it then", async () => {
  const flights = createFlights<number>();
  const [one, two] = [new AbortController(), new AbortController()];
  let work: AbortSignal | undefined;
  const first = flights.lead({ name: "a", fingerprint: "f" }, one.signal, ({ signal }) => {
    work = signal;
    return new Promise(() => {});
  }).ended;
  const second = flights.join("a", "f", two.signal)?.ended;
  one.abort(new Error("one left"));
  await expect(first).rejects.toThrow("one left");
  expect(work?.aborted).toBe(false);
  expect(flights.has("a")).toBe(true);
  two.abort(new Error("two left"));
  await expect(second).rejects.toThrow("two left");
  expect(work?.reason).toMatchObject({ message: "two left" });
  expect(flights.has("a")).toBe(false);
  const next = flights.lead({ name: "a", fingerprint: "g" }, never(), async () => 1);
  expect(await next.ended).toBe(1);
});

test("what is kept runs on without its callers, can be joined, and stops with the process", async () => {
  const flights = createFlights<number>();
  const left = new AbortController();
  let work: AbortSignal | undefined;
  const end = Promise.withResolvers<number>();
  const first = flights.lead({ name: "a", fingerprint: "f" }, left.signal, ({ signal, keep }) => {
    work = signal;
    keep();
    return end.promise;
  }).ended;
  left.abort(new Error("left"));
  await expect(first).rejects.toThrow("left");
  expect(work?.aborted).toBe(false);
  const joined = flights.join("a", "f", never())?.ended;
  end.resolve(7);
  expect(await joined).toBe(7);
  await flights.idle();
  const last = flights.lead(undefined, never(), ({ signal, keep }) => {
    keep();
    return new Promise((_, reject) =>
      signal.addEventListener("abort", () => reject(signal.reason)),
    );
  }).ended;
  flights.abortAll(new Error("stopping"));
  await expect(last).rejects.toThrow("stopping");
});
