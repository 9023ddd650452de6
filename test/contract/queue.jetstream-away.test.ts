import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { ErrorReason, isRefusal } from "#kit/base/errors.ts";
import { closeTimeoutMs, healWaitMs, publishBudgetMs } from "#kit/queue/jetstream-limits.ts";
import { parseNatsUrl } from "#kit/queue/jetstream-url.ts";
import { promptly } from "../support/promptly.ts";
import { openTcpWire, type TcpWire } from "../support/tcp-wire.ts";
import { until } from "../support/until.ts";
import { describeJetstream, openTestQueue } from "./queue.jetstream.world.ts";

const topic = "jobs-image";
/** Milliseconds that may pass beside the queue's own wait. */
const soonMs = 1_000;
const within = (ms = 5_000) => AbortSignal.timeout(ms);
/** Clients wait half a second before they connect again. */
const patience = { withinMs: 60_000 };

await describeJetstream("a queue whose server goes away", (jetstream) => {
  const wires: TcpWire[] = [];
  afterEach(async () => {
    for (const wire of wires.splice(0)) await wire[Symbol.asyncDispose]();
  });
  const lay = async () => {
    const wire = await openTcpWire(parseNatsUrl(jetstream.url).servers[0] ?? "");
    wires.push(wire);
    return { wire, url: `nats://${wire.address}` };
  };

  test("refuses at once, says so, and is there again when the server is", async () => {
    const { wire, url } = await lay();
    const name = jetstream.newName();
    const queue = await jetstream.open(name, { url });
    await using receiver = queue.subscribe(topic);
    const waiting = expect(receiver.next(within())).rejects.toThrow();
    await queue.publish(topic, "job_a");
    wire.cut();
    await waiting.catch(() => {});
    await until("the break to show", () => queue.notReady());
    await promptly(100, async () => {
      expect(await refusalOf(queue.publish(topic, "job_b"))).toBe(true);
      expect(await refusalOf(receiver.next(within()))).toBe(true);
    });
    // The stream is lost with the server.
    await (await jetstream.manager()).streams.delete(`${name}-wakes`);
    wire.mend();
    await until("the connection", () => queue.notReady() === undefined, patience);
    await queue.publish(topic, "job_b");
    expect((await receiver.next(within())).id).toBe("job_b");
  });

  test("waits a bounded time for a server that is silent, and but once", async () => {
    const { wire, url } = await lay();
    const queue = await jetstream.open(jetstream.newName(), { url });
    await queue.publish(topic, "job_a");
    wire.hold();
    const refused = (id: string) => refusalOf(queue.publish(topic, id));
    expect(await promptly(publishBudgetMs + soonMs, () => refused("job_b"))).toBe(true);
    expect(await promptly(healWaitMs + soonMs, () => refused("job_c"))).toBe(true);
    wire.mend();
    await until("the server to be heard", () => queue.notReady() === undefined, patience);
    await queue.publish(topic, "job_d");
  });

  test("need not be there when the process starts", async () => {
    const { wire, url } = await lay();
    wire.cut();
    const queue = await jetstream.open(jetstream.newName(), { url });
    expect(queue.notReady()).toMatch(/away/);
    expect(await refusalOf(queue.publish(topic, "job_a"))).toBe(true);
    wire.mend();
    await until("the connection", () => queue.notReady() === undefined, patience);
    await queue.publish(topic, "job_a");
  });

  test("closes within seconds although no server answers", async () => {
    const { wire, url } = await lay();
    const queue = await openTestQueue(url, jetstream.newName());
    wire.hold();
    await promptly(closeTimeoutMs + 1.5 * soonMs, async () => queue[Symbol.asyncDispose]());
  });

  test("an answer that is lost leaves one wake-up", async () => {
    const { wire, url } = await lay();
    const name = jetstream.newName();
    const queue = await jetstream.open(name, { url });
    wire.onReply = (chunk) => {
      if (!chunk.includes('"seq":')) return;
      wire.onReply = () => {};
      wire.snap();
    };
    expect(await refusalOf(queue.publish(topic, "job_a"))).toBe(true);
    await until("the connection", () => queue.notReady() === undefined, patience);
    await queue.publish(topic, "job_a");
    const { state } = await (await jetstream.manager()).streams.info(`${name}-wakes`);
    expect(state.messages).toBe(1);
  });
});

describe("credentials", () => {
  const servers: Server[] = [];
  afterEach(() => {
    for (const server of servers.splice(0)) server.close();
  });
  /** A server that records a client's login, and refuses it. */
  const listen = async () => {
    const brought = Promise.withResolvers<Record<string, unknown>>();
    const server = createServer((socket) => {
      const nonce = "bm9uY2U";
      const info = {
        server_id: "a",
        version: "2.12.0",
        headers: true,
        max_payload: 1 << 20,
        nonce,
      };
      socket.write(`INFO ${JSON.stringify({ ...info, auth_required: true })}\r\n`);
      socket.on("error", () => {});
      socket.on("data", (chunk) => {
        const line = /^CONNECT (.*)\r\n/m.exec(chunk.toString())?.[1];
        if (line) brought.resolve(JSON.parse(line));
        socket.end("-ERR 'Authorization Violation'\r\n");
      });
    }).listen(0, "127.0.0.1");
    servers.push(server);
    await once(server, "listening");
    return {
      address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
      brought: brought.promise,
    };
  };

  test.each([
    { auth: "us%40er:p%3Aw", sent: { user: "us@er", pass: "p:w" } },
    { auth: "s3cr3t", sent: { auth_token: "s3cr3t" } },
  ])("$sent of the URL are sent, and a refusal is told at start", async ({ auth, sent }) => {
    const { address, brought } = await listen();
    const error = await openTestQueue(`nats://${auth}@${address}`, "name").catch(String);
    expect(await brought).toMatchObject(sent);
    expect(error).toMatch(/refuses the credentials/);
    for (const secret of Object.values(sent)) expect(error).not.toContain(secret);
  });

  test("a file of credentials signs, and its absence is told at start", async () => {
    const { address, brought } = await listen();
    const folder = await mkdtemp(join(tmpdir(), "genmesh-creds-"));
    const credsFile = join(folder, "user.creds");
    const seed = "SUAKYRHVIOREXV7EUZTBHUHL7NUMHPMAS7QMDU3GTIUWEI5LDNOXD43IZY";
    await expect(openTestQueue(`nats://${address}`, "name", { credsFile })).rejects.toThrow(
      /ENOENT/,
    );
    await writeFile(
      credsFile,
      `-----BEGIN NATS USER JWT-----\nhead.claims.sign\n------END NATS USER JWT------\n\n` +
        `-----BEGIN USER NKEY SEED-----\n${seed}\n------END USER NKEY SEED------\n`,
    );
    await expect(openTestQueue(`nats://${address}`, "name", { credsFile })).rejects.toThrow();
    expect(await brought).toMatchObject({ jwt: "head.claims.sign", sig: expect.any(String) });
    await rm(folder, { recursive: true });
  });
});

async function refusalOf(work: Promise<unknown>): Promise<boolean> {
  const error = await work.catch((reason) => reason);
  return isRefusal(error, ErrorReason.SERVICE_UNAVAILABLE);
}
