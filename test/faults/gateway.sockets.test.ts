import { expect, test } from "vitest";
import { systemClock } from "#kit/time/clock.ts";
import { tempFolder } from "../host/process.ts";
import { textPriceMicros } from "../mesh/catalog.ts";
import { type MeshCaller, type MeshWorld, startMeshWorld } from "../mesh/world.ts";
import { openSocket } from "../support/caller-socket.ts";
import { checkAccount, gatherer, lawStores, openHolds } from "../support/laws.ts";
import { describeWithServers } from "../support/on-servers.ts";
import { until } from "../support/until.ts";
import { openWorldStores } from "../support/world-stores.ts";

const sockets = 50;
const delta = "response.output_text.delta";
const create = (input: string) => ({ type: "response.create", model: "chat", input });
const fund = { usdMicros: 1_000_000n };

await describeWithServers("on a mesh", () => {
  test(`after the death of a gateway with ${sockets} WebSockets each pays as a caller who left`, async () => {
    await using started = await startMeshWorld({ replicas: "1" });
    const world = started ?? expect.unreachable();
    const [gateway] = world.of("gateway");
    const baseUrl = `${world.gateways[0]}/v1`;
    const [caller, leaver] = [await world.caller(fund), await world.caller(fund)];

    const open = await Promise.all(
      Array.from({ length: sockets }, () => openSocket(baseUrl, caller.key)),
    );
    for (const socket of open) socket.send(create("One."));
    for (const socket of open)
      expect((await socket.turn()).at(-1)?.type).toBe("response.completed");
    const whole = BigInt(sockets) * textPriceMicros;
    await until("all first answers are charged", async () => {
      const { reserved, spent } = await balanceOf(world, caller);
      return reserved === 0n && spent === whole;
    });

    world.text.script({ kind: "ok", restAfter: new Promise(() => {}) });
    const before = world.text.requests.length;
    for (const socket of open) {
      socket.send(create("Two."));
      socket.send(create("It waits, and is never begun."));
    }
    await until("all second answers have begun", () =>
      open.every(({ frames }) => frames.at(-1)?.type === delta),
    );
    expect((await balanceOf(world, caller)).reserved).toBeGreaterThan(0n);

    await gateway?.kill();
    for (const { closed } of open) expect(await closed).toBe(1006);
    const begun = world.text.requests.slice(before);
    expect(begun).toHaveLength(sockets);
    await until("every upstream is left", () => begun.every(({ aborted }) => aborted));
    await until("no hold is left", async () => (await balanceOf(world, caller)).reserved === 0n);

    await gateway?.start();
    const left = await chargeOfLeaving(world, leaver, "Two.");
    expect(left).toBeGreaterThan(0n);
    expect((await balanceOf(world, caller)).spent).toBe(whole + BigInt(sockets) * left);
    expect(await breachesOf(world, caller)).toEqual([]);

    world.text.script({ kind: "ok" });
    using again = await openSocket(baseUrl, caller.key);
    again.send(create("The whole conversation."));
    expect((await again.turn()).at(-1)?.type).toBe("response.completed");
  });
});

async function balanceOf({ operator }: MeshWorld, { accountId }: MeshCaller) {
  const { usdMicros } = await operator.billing.getBalance({ accountId });
  return usdMicros ?? expect.unreachable();
}

/** The charge of a request over HTTP whose caller leaves behind the first piece of text. */
async function chargeOfLeaving(world: MeshWorld, caller: MeshCaller, input: string) {
  const leave = new AbortController();
  const answer = await fetch(`${world.gateways[0]}/v1/responses`, {
    method: "POST",
    headers: { authorization: `Bearer ${caller.key}`, "content-type": "application/json" },
    // A WebSocket makes a message of it.
    body: JSON.stringify({
      ...{ model: "chat", stream: true },
      input: [{ role: "user", content: input }],
    }),
    signal: leave.signal,
  });
  let text = "";
  for await (const chunk of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk;
    if (text.includes(`event: ${delta}\n`)) break;
  }
  leave.abort();
  await until("its hold is gone", async () => {
    const { reserved, spent } = await balanceOf(world, caller);
    return reserved === 0n && spent > 0n;
  });
  return (await balanceOf(world, caller)).spent;
}

/** The laws that the account's wallet, holds and entries break, read from the stores. */
async function breachesOf(
  { stores: { env } }: MeshWorld,
  { accountId }: MeshCaller,
): Promise<string[]> {
  await using scratch = await tempFolder();
  await using opened = await openWorldStores({ folder: scratch.path, clock: systemClock, env });
  const stores = lawStores(opened);
  const { breaches, check } = gatherer();
  await checkAccount(stores, { accountId }, check);
  return [...breaches, ...(await openHolds(stores, accountId))];
}
