import { describe, expect, test } from "vitest";
import { Inbox } from "./inbox.ts";
import { messageOverheadBytes, readAheadBytes } from "./limits.ts";

function inbox(parse = (payload: Uint8Array) => payload.length) {
  const calls: string[] = [];
  const source = {
    pause: () => calls.push("pause"),
    resume: () => calls.push("resume"),
    leave: () => calls.push("leave"),
  };
  return { calls, inbox: new Inbox<number>(source, parse) };
}

describe("Inbox", () => {
  test("gives what came, then the end", async () => {
    const { inbox: one } = inbox();
    const early = one.next();
    one.push(Buffer.alloc(1));
    one.push(Buffer.alloc(2));
    one.finish();
    expect(await early).toEqual({ done: false, value: 1 });
    expect(await one.next()).toEqual({ done: false, value: 2 });
    expect(await one.next()).toEqual({ done: true, value: undefined });
  });

  test("gives what came before an error, then the error, then the end", async () => {
    const { inbox: one } = inbox();
    one.push(Buffer.alloc(1));
    one.finish(new Error("broken"));
    expect(await one.next()).toEqual({ done: false, value: 1 });
    await expect(one.next()).rejects.toThrow("broken");
    expect(await one.next()).toEqual({ done: true, value: undefined });
  });

  test("an abort drops what lies here", async () => {
    const { inbox: one } = inbox();
    one.push(Buffer.alloc(1));
    one.fail(new Error("aborted"));
    await expect(one.next()).rejects.toThrow("aborted");
  });

  test("an abort wakes the reader", async () => {
    const { inbox: one } = inbox();
    const waiting = one.next();
    one.fail(new Error("aborted"));
    await expect(waiting).rejects.toThrow("aborted");
  });

  test("holds the source back while much waits, and lets it go on when half is read", async () => {
    const { calls, inbox: one } = inbox();
    const quarter = readAheadBytes / 4 - messageOverheadBytes;
    for (let i = 0; i < 4; i++) one.push(Buffer.alloc(quarter));
    expect(calls).toEqual([]);
    one.push(Buffer.alloc(quarter));
    one.push(Buffer.alloc(quarter));
    expect(calls).toEqual(["pause"]);
    for (let i = 0; i < 3; i++) await one.next();
    expect(calls).toEqual(["pause"]);
    await one.next();
    expect(calls).toEqual(["pause", "resume"]);
  });

  test("leaving early tells the source once; leaving after the end does not", async () => {
    const { calls, inbox: one } = inbox();
    await one.return();
    await one.return();
    expect(calls).toEqual(["leave"]);
    one.push(Buffer.alloc(1));
    expect(await one.next()).toEqual({ done: true, value: undefined });
    const { calls: later, inbox: other } = inbox();
    other.finish();
    await other.return();
    expect(later).toEqual([]);
  });

  test("a message that cannot be parsed ends it in its place", async () => {
    const { calls, inbox: one } = inbox((payload) => {
      if (payload.length === 2) throw new Error("unreadable");
      return payload.length;
    });
    for (const size of [1, 2, 3]) one.push(Buffer.alloc(size));
    expect(await one.next()).toEqual({ done: false, value: 1 });
    await expect(one.next()).rejects.toThrow("unreadable");
    expect(calls).toEqual(["leave"]);
    expect(await one.next()).toEqual({ done: true, value: undefined });
  });
});
