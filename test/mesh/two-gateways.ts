import { expect } from "vitest";
import { peerVariables } from "../../services/host/config-wire.ts";
import type { DayWorld } from "../console/day.ts";
import { startProcess, tempFolder, type Variables } from "../host/process.ts";
import { freeMeshPorts } from "../support/free-port.ts";
import { ownStores } from "../support/stores.ts";
import { startTurnsFront } from "../support/turns-front.ts";

/** A new mesh. */
export interface TwoGateways extends DayWorld {
  /** The operator's command finds the processes by this. */
  operatorEnv: Variables;
}

/** Starts the processes of `npm run mesh`, behind a front that changes the gateway with each request. */
export async function startTwoGateways(): Promise<TwoGateways> {
  await using stack = new AsyncDisposableStack();
  const stores = await ownStores(stack, "mesh");
  if (!stores) throw new Error("there is no server for one of the stores");
  const data = stack.use(await tempFolder());
  const front = stack.use(await startTurnsFront());
  const adminToken = "admin-token-of-a-day-on-a-mesh";
  const first = await freeMeshPorts();
  const words = ["--replicas", "1,gateway=2", "--internal-port", `${first}`];
  const runner = startProcess(process.execPath, ["services/host/run-mesh/main.ts", ...words], {
    env: {
      PORT: `${first}`,
      GENMESH_DATA_DIR: data.path,
      GENMESH_ADMIN_TOKEN: adminToken,
      GENMESH_PUBLIC_URL: front.origin,
      GENMESH_LOG_LEVEL: "warn",
      GENMESH_DRAIN_MS: "1000",
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
      ...stores.env,
    },
  });
  stack.defer(async () => {
    runner.kill("SIGTERM");
    expect(await runner.ended).toEqual({ code: 0, signal: null });
  });
  const [, urls = "", key = ""] = await runner.says(
    /^genmesh is ready: (\S+(?: \S+)*) {2}key: (\S+)\n/,
  );
  front.gateways = urls.split(" ").map((url) => new URL(url).origin);
  expect(front.gateways).toHaveLength(2);
  stack.defer(() => expect([...front.asked.keys()].sort()).toEqual([...front.gateways].sort()));
  const saidUrl = (role: string) =>
    new RegExp(`genmesh ${role} is ready: (\\S+)`).exec(runner.stderr())?.[1];
  const peers = Object.entries(peerVariables).map(([role, variable]) => [variable, saidUrl(role)]);
  const owned = stack.move();
  const { origin } = front;
  return {
    ...{ origin, key, adminToken },
    operatorEnv: { ...Object.fromEntries(peers), GENMESH_ADMIN_TOKEN: adminToken },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
