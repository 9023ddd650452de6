import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test, vi } from "vitest";
import { openRaw } from "./raw.ts";
import { startEdge } from "./world.ts";

setFlagsFromString("--expose-gc");
const collectGarbage: () => void = runInNewContext("gc");

test.each(["in one piece", "in two pieces"])(
  "a connection without a request keeps nothing of its last body, which came %s",
  async (how) => {
    const bodies: WeakRef<ArrayBufferLike>[] = [];
    await using edge = await startEdge({
      text: {
        generate({ body }) {
          bodies.push(new WeakRef(body.buffer));
          return { body: Buffer.from("{}") };
        },
      },
    });
    const body = JSON.stringify({ model: "chat-1", input: "x".repeat(100_000) });
    const head = [
      "POST /v1/responses HTTP/1.1",
      "host: a",
      `authorization: Bearer ${edge.key}`,
      "content-type: application/json",
      `content-length: ${body.length}`,
    ];
    using connection = await openRaw(edge.port);
    connection.send(`${head.join("\r\n")}\r\n\r\n`);
    const cut = how === "in one piece" ? 0 : 50_000;
    connection.send(body.slice(0, cut));
    connection.send(body.slice(cut));
    await connection.until((received) => received.endsWith("{}"));
    expect(bodies).toHaveLength(1);
    const isGone = () => {
      collectGarbage();
      return bodies[0]?.deref() === undefined;
    };
    await vi.waitUntil(isGone, { timeout: 10_000 });
    expect(connection.socket.destroyed).toBe(false);
  },
);
