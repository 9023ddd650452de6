import { AsyncLocalStorage } from "node:async_hooks";
import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { ReplyBody } from "./reply-body.ts";

/** A body, and the calls that its connection gets. */
function bodyOf() {
  const told: string[] = [];
  const controller = { paused: false, pause() {}, resume() {} };
  const body = new ReplyBody(controller as never, () => told.push("closed"));
  return { body, told };
}

describe("a body that is pushed", () => {
  test("gives what came in one read of the socket at once, then the end", async () => {
    const { body } = bodyOf();
    const seen: string[] = [];
    const sink = {
      push(chunk: Buffer) {
        seen.push(chunk.toString());
        return true;
      },
      end: () => void seen.push("end"),
      fail() {},
    };
    body.chunks.pushTo(sink).resume();
    body.came(Buffer.from("a"));
    body.came(Buffer.from("b"));
    await turn();
    body.came(Buffer.from("c"));
    body.finish(undefined);
    await turn();
    expect(seen).toEqual(["ab", "c", "end"]);
  });

  test("is read in its reader's context, though its connection was made in another request's", async () => {
    const request = new AsyncLocalStorage<string>();
    const { body } = bodyOf();
    const seen: (string | undefined)[] = [];
    const sink = {
      push() {
        seen.push(request.getStore());
        return true;
      },
      end: () => void seen.push(request.getStore()),
      fail() {},
    };
    request.run("its own", () => body.chunks.pushTo(sink).resume());
    request.run("another", () => body.came(Buffer.from("a")));
    await turn();
    request.run("another", () => body.finish(undefined));
    await turn();
    expect(seen).toEqual(["its own", "its own"]);
  });

  test("a fault in what reads it closes its connection and ends it alone", async () => {
    const { body, told } = bodyOf();
    const failed = Promise.withResolvers<unknown>();
    const sink = {
      push() {
        throw new Error("a fault");
      },
      end() {},
      fail: failed.resolve,
    };
    body.chunks.pushTo(sink).resume();
    body.came(Buffer.from("a"));
    expect(await failed.promise).toEqual(new Error("a fault"));
    expect(told).toEqual(["closed"]);
  });
});

describe("a whole body", () => {
  test("that is here is answered at once, within its bounds and its room", async () => {
    const here = bodyOf().body;
    here.came(Buffer.from("ab"));
    here.finish(undefined);
    expect(here.whole(2)).toEqual(Buffer.from("ab"));
    const large = bodyOf().body;
    large.came(Buffer.from("abc"));
    large.finish(undefined);
    await expect(large.whole(2)).rejects.toMatchObject({ kind: "too_large" });
    const roomy = bodyOf().body;
    roomy.came(Buffer.from("abc"));
    roomy.finish(undefined);
    const asked: number[] = [];
    const room = {
      freeBytes: 2,
      announcedBytes: undefined,
      async reach(bytes: number) {
        asked.push(bytes);
        return 10;
      },
    };
    expect(await roomy.whole(10, room)).toEqual(Buffer.from("abc"));
    expect(asked).toEqual([3]);
  });

  test("that still comes, or broke, is waited for", async () => {
    const coming = bodyOf().body;
    coming.came(Buffer.from("a"));
    const whole = coming.whole(10);
    coming.came(Buffer.from("b"));
    coming.finish(undefined);
    expect(await whole).toEqual(Buffer.from("ab"));
    const broken = bodyOf().body;
    broken.came(Buffer.from("a"));
    broken.finish(new Error("gone"));
    await expect(broken.whole(10)).rejects.toThrow("gone");
  });
});
