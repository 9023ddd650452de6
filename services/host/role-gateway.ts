// Starts role `gateway` in a process of its own: the public port, with all services behind the wire.

import { createCatalogView } from "#common/agreements/catalog-client.ts";
import { createWireText } from "#common/agreements/text-wire.ts";
import { openCertificates } from "./certificates.ts";
import { type HostContext, readinessOf, untilReady } from "./context.ts";
import { openEdge } from "./edge.ts";
import { listening } from "./listen.ts";
import { listenForOps } from "./ops.ts";
import type { RoleProcess } from "./role.ts";
import { createScratch } from "./scratch.ts";
import { watchStores } from "./store-watch.ts";
import { openStores, storeOf } from "./stores.ts";
import { openPeers } from "./wire.ts";

/** Starts the public edge of a mesh. It calls every service over the wire. */
export async function startGateway(
  context: HostContext,
  signal: AbortSignal,
): Promise<RoleProcess> {
  await using stack = new AsyncDisposableStack();
  stack.use(context.workshop);
  const { config } = context;
  const tls = await openCertificates(context, stack);
  const peers = openPeers(context, { stack, tls: tls.client });
  const scratch = createScratch(config, stack);
  const stores = await openStores(context, { stack, scratch });
  let draining = false;
  const watch = stack.use(watchStores(context, stores.checks));
  const ready = readinessOf([], () => draining);
  const notReady = () => ready() ?? watch.notReady();
  const blobs = storeOf(stores, "blobs");
  const catalog = stack.use(createCatalogView({ ...context, catalog: peers.catalog }));
  const edge = stack.use(
    await openEdge(context, {
      ...{ peers, catalog, blobs, notReady, tls: tls.server },
      text: createWireText(peers.text),
      // A gateway in its own process has admin power only where its operator has given it the token.
      operatorToken: config.tokens.admin,
    }),
  );
  const opsUrl = await listenForOps(context, edge.notReady, stack);
  const { host, port } = config.ports.http;
  const address = { host, port, portVariable: "PORT", hostVariable: "HOST" };
  const url = await listening(address, () => edge.listen());
  await untilReady(context, edge.notReady, signal);
  const owned = stack.move();
  return {
    url,
    grpcAddress: undefined,
    opsUrl,
    async drain(late) {
      draining = true;
      // A caller that sends a request meanwhile gets its answer, and uses another gateway next.
      await edge.whenLeft(late);
      await edge.whenIdle(late);
      await edge.close();
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
