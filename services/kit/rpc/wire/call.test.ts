import { getEventListeners } from "node:events";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { Call } from "./call.ts";

const never = new Promise<never>(() => {});

describe("Call", () => {
  test("a deadline aborts it: signal, listeners and what races with it", async () => {
    const call = new Call({ timeoutMs: 5 });
    const heard: unknown[] = [];
    call.onAbort((reason) => heard.push(reason));
    const { signal } = call;
    await expect(call.race(never)).rejects.toMatchObject({ code: Code.DeadlineExceeded });
    expect(signal.aborted).toBe(true);
    expect(heard).toEqual([signal.reason]);
    expect(call.isLate).toBe(true);
  });

  test.each([0, -5])("a deadline of %s has passed", (timeoutMs) => {
    const call = new Call({ timeoutMs });
    expect(call.isAborted).toBe(true);
    expect(() => call.throwIfAborted()).toThrow("timed out");
    expect(call.signal.aborted).toBe(true);
  });

  test("a deadline that no timer can hold is none", async () => {
    const call = new Call({ timeoutMs: 9_999_999_999 });
    // Node runs a timer with too long a time after 1 ms, so before this one.
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(call.isAborted).toBe(false);
    expect(call.leftMs()).toBeGreaterThan(9_000_000_000);
    call.end();
  });

  test("the caller's abort is its abort, with its reason", async () => {
    const caller = new AbortController();
    const call = new Call({ signal: caller.signal });
    const racing = call.race(never);
    caller.abort(new Error("enough"));
    await expect(racing).rejects.toThrow("enough");
    expect(call.signal.reason).toBe(caller.signal.reason);
    const meant = call.errorOf(new Error("some consequence"));
    expect([meant.code, meant.rawMessage]).toEqual([Code.Canceled, "enough"]);
    expect(new Call({ signal: caller.signal }).isAborted).toBe(true);
  });

  test("its end leaves no timer and no listener, and aborts the signal that was asked for", async () => {
    const caller = new AbortController();
    const timers = () => process.getActiveResourcesInfo().filter((one) => one === "Timeout").length;
    const before = timers();
    const call = new Call({ signal: caller.signal, timeoutMs: 60_000 });
    const { signal } = call;
    expect(timers()).toBe(before + 1);
    call.onAbort(() => expect.unreachable("it ended well"));
    expect(await call.race(Promise.resolve("done"))).toBe("done");
    call.end();
    expect(timers()).toBe(before);
    expect(getEventListeners(caller.signal, "abort")).toEqual([]);
    expect(signal.aborted).toBe(true);
    expect(call.isAborted).toBe(false);
    call.abort(new Error("too late"));
    expect(call.isAborted).toBe(false);
    expect(call.errorOf(new ConnectError("x", Code.NotFound)).code).toBe(Code.NotFound);
  });
});
