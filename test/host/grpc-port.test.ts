import { createClient, type Transport } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createPeers, type Peers } from "#common/agreements/peers.ts";
import { ErrorReason, isRefusal } from "#kit/base/errors.ts";
import { tokenInterceptor } from "#kit/rpc/access.ts";
import { Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { Health, HealthCheckResponse_ServingStatus } from "#proto/grpc/health/v1/health_pb.ts";
import { type HostWorld, meshToken, startHostWorld } from "./world.ts";

let world: HostWorld;
beforeAll(async () => {
  world = await startHostWorld();
});
afterAll(() => world[Symbol.asyncDispose]());

type Options = Parameters<typeof createGrpcTransport>[0];
const protocols: [string, (options: Options) => Transport][] = [
  ["gRPC", createGrpcTransport],
  ["gRPC-Web", (options) => createGrpcWebTransport({ ...options, httpVersion: "2" })],
  ["Connect", (options) => createConnectTransport({ ...options, httpVersion: "2" })],
];

describe.each(protocols)("%s on the port for internal callers", (_name, transport) => {
  const baseUrl = () => `http://${world.mesh.grpcAddress}`;
  const peers = (token?: string): Peers =>
    createPeers(() =>
      transport({ baseUrl: baseUrl(), interceptors: token ? [tokenInterceptor(token)] : [] }),
    );

  test("health needs no token", async () => {
    const health = createClient(Health, transport({ baseUrl: baseUrl() }));
    for (const service of ["", "genmesh.billing.v1.BillingService"]) {
      const { status } = await health.check({ service });
      expect(status).toBe(HealthCheckResponse_ServingStatus.SERVING);
    }
    await expect(health.check({ service: "no.such.Service" })).rejects.toThrow(/not_found/);
  });

  test("the admin token makes accounts and money", async () => {
    const { auth, billing } = peers(world.mesh.adminToken);
    const { account, secret } = await auth.createAccount({ name: _name });
    expect(secret).toMatch(/^gm_/);
    const accountId = account?.accountId ?? "";
    const grant = { accountId, unit: Unit.CREDITS, amount: 7n, operationId: "first" };
    expect((await billing.grant(grant)).replayed).toBe(false);
    expect((await billing.grant(grant)).replayed).toBe(true);
    expect((await billing.getBalance({ accountId })).credits).toMatchObject({ available: 7n });
    const summaries = [];
    for await (const { finding } of billing.auditLedger({ accountId }))
      summaries.push(finding.case);
    expect(summaries).toEqual(["summary"]);
  });

  test("a refusal keeps its reason", async () => {
    const error = await failure(peers(world.mesh.adminToken).auth.getAccount({ accountId: "no" }));
    expect(isRefusal(error, ErrorReason.ACCOUNT_NOT_FOUND)).toBe(true);
  });

  test("the mesh token reads, and makes neither accounts nor money", async () => {
    const { auth, billing } = peers(meshToken);
    expect((await billing.getBalance({ accountId: "nobody" })).credits).toBeDefined();
    const grant = { accountId: "a", unit: Unit.CREDITS, amount: 1n, operationId: "x" };
    for (const call of [
      () => auth.createAccount({ name: "x" }),
      () => auth.listAccounts({}),
      () => auth.revokeKey({ keyId: "key_x" }),
      () => billing.grant(grant),
      () => billing.listHolds({}),
    ]) {
      expect(isRefusal(await failure(call()), ErrorReason.CALLER_FORBIDDEN)).toBe(true);
    }
  });

  test.each([[undefined], ["a-token-of-somebody-else"]])(
    "token %s is refused everywhere else",
    async (token) => {
      const { auth, billing, catalog } = peers(token);
      for (const call of [
        () => auth.listAccounts({}),
        () => billing.getBalance({ accountId: "a" }),
        () => catalog.getSnapshot({}),
      ]) {
        expect(isRefusal(await failure(call()), ErrorReason.CALLER_UNAUTHENTICATED)).toBe(true);
      }
    },
  );
});

test("a watcher of health hears of the stop, and does not delay it", async () => {
  await using other = await startHostWorld();
  const health = createClient(
    Health,
    createGrpcTransport({ baseUrl: `http://${other.mesh.grpcAddress}` }),
  );
  const seen: HealthCheckResponse_ServingStatus[] = [];
  const watching = (async () => {
    for await (const { status } of health.watch({})) {
      seen.push(status);
      if (seen.length === 1) void other.mesh.drain(AbortSignal.timeout(5_000));
      if (seen.length === 2) break;
    }
  })();
  await watching;
  expect(seen).toEqual([
    HealthCheckResponse_ServingStatus.SERVING,
    HealthCheckResponse_ServingStatus.NOT_SERVING,
  ]);
});

async function failure(call: Promise<unknown>): Promise<unknown> {
  return call.then(
    () => expect.unreachable("it was not refused"),
    (error: unknown) => error,
  );
}
