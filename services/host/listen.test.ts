import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { type AddressInfo, createServer } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { ConfigError } from "./env.ts";
import { checkAddress, countInFlight, listening } from "./listen.ts";

const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup();
});

describe("requests in flight", () => {
  /** A server that holds its answers until the test ends them. */
  async function holding() {
    const inFlight = countInFlight();
    const held: ServerResponse[] = [];
    const server = inFlight.createServer({}, (_, response) => void held.push(response));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    cleanups.push(
      () => server.closeAllConnections(),
      () => server.close(),
    );
    const { port } = server.address() as AddressInfo;
    return { inFlight, held, ask: () => fetch(`http://127.0.0.1:${port}/`) };
  }

  test("idle is reached when the last one is answered, not the first", async () => {
    const { inFlight, held, ask } = await holding();
    const never = new AbortController().signal;
    expect(inFlight.isIdle()).toBe(true);
    await inFlight.whenIdle(never);
    const [one, two] = [ask(), ask()];
    await expect.poll(() => held.length).toBe(2);
    let isIdle = false;
    const idle = inFlight.whenIdle(never).then(() => {
      isIdle = true;
    });
    held[0]?.end("done");
    await Promise.race([one, two]);
    expect([inFlight.isIdle(), isIdle]).toEqual([false, false]);
    held[1]?.end("done");
    await Promise.all([idle, one, two]);
    expect(inFlight.isIdle()).toBe(true);
  });

  test("once it drains, an answer is the last one of its connection", async () => {
    const { inFlight, held, ask } = await holding();
    const before = ask();
    await expect.poll(() => held.length).toBe(1);
    held[0]?.end();
    expect((await before).headers.get("connection")).toBe("keep-alive");
    await inFlight.whenIdle(new AbortController().signal);
    const after = ask();
    await expect.poll(() => held.length).toBe(2);
    held[1]?.end();
    expect((await after).headers.get("connection")).toBe("close");
  });

  test("so is one that was asked for before, where its head is still to come", async () => {
    const { inFlight, held, ask } = await holding();
    const asked = ask();
    await expect.poll(() => held.length).toBe(1);
    inFlight.sendAway();
    held[0]?.end();
    expect((await asked).headers.get("connection")).toBe("close");
  });

  test("callers have left when no connection is open; those that stay are given a while", async () => {
    const { inFlight, held, ask } = await holding();
    const never = new AbortController().signal;
    await inFlight.whenLeft(never);
    const asked = ask();
    await expect.poll(() => held.length).toBe(1);
    let haveLeft = false;
    const left = inFlight.whenLeft(never).then(() => {
      haveLeft = true;
    });
    expect(haveLeft).toBe(false);
    held[0]?.end();
    await asked;
    await left;
    const { inFlight: other, held: stuck, ask: askOther } = await holding();
    const open = askOther();
    await expect.poll(() => stuck.length).toBe(1);
    await other.whenLeft(never);
    expect(other.isIdle()).toBe(false);
    stuck[0]?.end();
    await open;
  });

  test("a caller that stops waiting is let go", async () => {
    const { inFlight, held, ask } = await holding();
    const open = ask();
    await expect.poll(() => held.length).toBe(1);
    const enough = new AbortController();
    const idle = inFlight.whenIdle(enough.signal);
    enough.abort();
    await idle;
    expect(inFlight.isIdle()).toBe(false);
    held[0]?.end();
    await open;
  });
});

describe("an address", () => {
  const at = (port: number, host = "127.0.0.1") =>
    ({ host, port, portVariable: "PORT", hostVariable: "HOST" }) as const;

  test("that is free is free again after the look", async () => {
    await checkAddress(at(0));
  });

  test("that is taken names the variable of the port", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    cleanups.push(() => other.close());
    const { port } = other.address() as AddressInfo;
    await expect(checkAddress(at(port))).rejects.toThrow(
      new ConfigError(
        `PORT ${port} is in use by another program (at 127.0.0.1:${port}): stop it, or choose another port`,
      ),
    );
  });

  test.each([
    ["EADDRNOTAVAIL", /^HOST must be an address of this machine/],
    ["ENOTFOUND", /^HOST must be an address of this machine/],
    ["EACCES", /^PORT 80 needs a privilege/],
  ])("%s", async (code, message) => {
    const fails = () => Promise.reject(Object.assign(new Error("listen"), { code }));
    await expect(listening(at(80, "there"), fails)).rejects.toThrow(message);
  });

  test("any other fault stays what it is", async () => {
    const fault = new Error("something else");
    await expect(listening(at(80), () => Promise.reject(fault))).rejects.toBe(fault);
  });
});
