import { afterAll, beforeAll, expect, test } from "vitest";
import { type CallerSocket, openSocket, refusedSocket } from "../support/caller-socket.ts";
import { until } from "../support/until.ts";
import { textPriceMicros } from "./catalog.ts";
import { describeMesh } from "./servers.ts";
import { type MeshCaller, type MeshWorld, startMeshWorld } from "./world.ts";

/** More than one of them closes at any moment of the time over which they are spread. */
const idleSockets = 8;

await describeMesh("two gateways, each stopped in the middle of answers", () => {
  let world: MeshWorld;
  beforeAll(async () => {
    const env = { GENMESH_DRAIN_MS: "120000", GENMESH_WS_IN_FLIGHT: "2" };
    const started = await startMeshWorld({ replicas: "1,gateway=2", env });
    if (!started) throw new Error("there is no server for one of the stores");
    world = started;
  });
  afterAll(() => world?.[Symbol.asyncDispose]());

  test.each([
    ["first", 0],
    ["second", 1],
  ])("the %s one ends its answers, and its callers go on at the other", async (_, turn) => {
    const caller = await world.caller({ usdMicros: 1_000_000n });
    const [stopping, other] = [world.of("gateway")[turn], world.gateways[1 - turn] ?? ""];
    const gateway = world.gateways[turn] ?? "";
    const rest = Promise.withResolvers<void>();
    world.text.script({ kind: "ok", restAfter: rest.promise });
    const idle = await Promise.all(
      Array.from({ length: idleSockets }, () => openSocket(`${gateway}/v1`, caller.key)),
    );
    const closings: number[] = [];
    for (const { closed } of idle) void closed.then((code) => closings.push(code));
    const [responses, messages] = await Promise.all([
      streamOf(gateway, caller, { path: "/responses", body: { input: "Hi" } }),
      streamOf(gateway, caller, {
        path: "/messages",
        body: { messages: [{ role: "user", content: "Hi" }], max_tokens: 50 },
      }),
    ]);
    using busy = await openSocket(`${gateway}/v1`, caller.key);
    for (const [stream_id, input] of [
      ["a", "It runs."],
      ["b", "It runs too."],
      ["a", "It waits."],
      ["c", "It waits too."],
    ]) {
      busy.send({ type: "response.create", model: "chat", stream_id, input });
    }
    await until("both lanes have begun", () => deltasOf(busy, "a") + deltasOf(busy, "b") === 2);

    const stopped = stopping?.stop();
    await until("those that wait are refused", () => errorsOf(busy).length === 2);
    expect(errorsOf(busy)).toEqual([
      ["a", "websocket_connection_limit_reached"],
      ["c", "websocket_connection_limit_reached"],
    ]);
    const refused = await refusedSocket(`${gateway}/v1`, {
      authorization: `Bearer ${caller.key}`,
    });
    expect(refused).toMatchObject({ status: 503, headers: { connection: "close" } });
    await Promise.all(idle.map(({ closed }) => closed));
    expect(closings).toEqual(Array(idleSockets).fill(1012));

    // Callers of idle sockets go on at the other gateway, while the first one still has work.
    using moved = await openSocket(`${other}/v1`, caller.key);
    moved.send({ type: "response.create", model: "chat", input: "The whole conversation." });
    await until("it is answered", () => deltasOf(moved) === 1);

    rest.resolve();
    expect(await responses.text).toContain("event: response.completed\n");
    expect(await messages.text).toContain("event: message_stop\n");
    expect(await busy.closed).toBe(1012);
    expect(endsOf(busy)).toEqual(["a", "b"]);
    expect((await moved.turn()).at(-1)?.type).toBe("response.completed");
    expect(await stopped).toBe(0);
    const { accountId } = caller;
    await until("no hold is left", async () => (await creditOf(accountId))?.reserved === 0n);
    // Five answers, each as a whole.
    expect((await creditOf(accountId))?.spent).toBe(5n * textPriceMicros);
    await stopping?.start();
  });

  const creditOf = async (accountId: string) =>
    (await world.operator.billing.getBalance({ accountId })).usdMicros;
});

const deltasOf = ({ frames }: CallerSocket, lane?: string) =>
  frames.filter(
    ({ type, stream_id }) => type === "response.output_text.delta" && stream_id === lane,
  ).length;
const errorsOf = ({ frames }: CallerSocket) =>
  frames
    .filter(({ type }) => type === "error")
    .map((frame) => [frame.stream_id, frame.error?.code]);
const endsOf = ({ frames }: CallerSocket) =>
  frames
    .filter(({ type }) => type === "response.completed")
    .map(({ stream_id }) => stream_id)
    .sort();

/** Opens a stream. Resolves when its head has come, with the promise of its whole text. */
async function streamOf(
  gateway: string,
  { key }: MeshCaller,
  { path, body }: { path: string; body: object },
): Promise<{ text: Promise<string> }> {
  const answer = await fetch(`${gateway}/v1${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "chat", stream: true, ...body }),
  });
  expect(answer.status).toBe(200);
  return { text: answer.text() };
}
