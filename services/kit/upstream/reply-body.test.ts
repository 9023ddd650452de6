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
