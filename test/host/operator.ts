import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { createPeers, type Peers } from "#common/agreements/peers.ts";
import { tokenInterceptor } from "#kit/rpc/access.ts";

/** Clients of a process's gRPC port, with the admin token of its data directory. */
export async function operatorOf(
  { grpcAddress }: { grpcAddress: string },
  dataDir: string,
): Promise<Peers> {
  const token = (await readFile(join(dataDir, "admin-token"), "utf8")).trim();
  const transport = createGrpcTransport({
    baseUrl: `http://${grpcAddress}`,
    interceptors: [tokenInterceptor(token)],
  });
  return createPeers(() => transport);
}
