import { createClient, type HandlerContext } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { ErrorReason, type Reason } from "#kit/base/errors.ts";
import { AuthService } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import { BillingService } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { MediaService } from "#proto/genmesh/media/v1/media_service_pb.ts";
import { Health } from "#proto/grpc/health/v1/health_pb.ts";
import { type AccessTokens, accessInterceptor, tokenInterceptor } from "./access.ts";
import { createDirectTransport } from "./direct-transport.ts";
import { healthService } from "./health.ts";
import { principalHeader, principalKey } from "./principal.ts";
import { type RpcService, rpcService } from "./service.ts";

// One method of each kind of access, over the transport of one process. The ports use the same interceptor.

const [former, present, next, admin] = ["former-token", "present-token", "next-token", "admin"];
const needsPrincipal = { metadata: { needs: principalHeader } };

/** Clients that send `token` to a server that accepts `tokens`. */
function clients(tokens: AccessTokens, token: string | undefined) {
  const seen: string[] = [];
  const served: RpcService[] = [
    rpcService(AuthService, {
      listAccounts: () => ({}),
    } as never),
    rpcService(BillingService, { getBalance: () => ({}) } as never),
    rpcService(MediaService, {
      getJob: (_: unknown, { values }: HandlerContext) => {
        seen.push(values.get(principalKey)?.accountId ?? "nobody");
        return {};
      },
    } as never),
  ];
  const transport = createDirectTransport({
    services: () => [...served, healthService(served, () => undefined)],
    clientInterceptors: token === undefined ? [] : [tokenInterceptor(token)],
    serverInterceptors: [accessInterceptor(tokens)],
  });
  const headers = (principal?: string) =>
    principal === undefined ? {} : { headers: { [principalHeader]: principal } };
  return {
    seen,
    health: () => createClient(Health, transport).check({}),
    ofMesh: () => createClient(BillingService, transport).getBalance({}),
    ofPrincipal: (principal?: string) =>
      createClient(MediaService, transport).getJob({}, headers(principal)),
    ofAdmin: (principal?: string) =>
      createClient(AuthService, transport).listAccounts({}, headers(principal)),
  };
}

const refused = (reason: Reason, more: object = {}) => ({ name: "RefusalError", reason, ...more });
const unauthenticated = refused(ErrorReason.CALLER_UNAUTHENTICATED);

describe("who may call", () => {
  test.each([[undefined], [""], ["stranger"], [`${present},${next}`], [`${present}x`]])(
    "%j opens nothing but health",
    async (token) => {
      const calls = clients({ mesh: [present, next], admin }, token);
      await expect(calls.health()).resolves.toMatchObject({ status: 1 });
      for (const call of [calls.ofMesh, () => calls.ofPrincipal("a/k"), calls.ofAdmin]) {
        await expect(call()).rejects.toMatchObject(unauthenticated);
      }
    },
  );

  test("the mesh token opens all but the operator's methods, with any principal", async () => {
    const calls = clients({ mesh: [present], admin }, present);
    await expect(calls.ofMesh()).resolves.toBeDefined();
    await expect(calls.ofPrincipal("acct_1/key_1")).resolves.toBeDefined();
    expect(calls.seen).toEqual(["acct_1"]);
    const forbidden = refused(ErrorReason.CALLER_FORBIDDEN);
    await expect(calls.ofAdmin()).rejects.toMatchObject(forbidden);
    await expect(calls.ofAdmin("acct_1/key_1")).rejects.toMatchObject(forbidden);
  });

  test.each([[undefined], [""], ["acct_1"], ["acct_1/"], ["/key_1"], ["a/b/c"], ["a b/c"]])(
    "the principal %j is none, for the mesh's token and the operator's",
    async (principal) => {
      for (const token of [present, admin]) {
        const calls = clients({ mesh: [present], admin }, token);
        await expect(calls.ofPrincipal(principal)).rejects.toMatchObject(
          refused(ErrorReason.CALLER_UNAUTHENTICATED, needsPrincipal),
        );
        expect(calls.seen).toEqual([]);
      }
    },
  );

  test("the admin token opens everything", async () => {
    const calls = clients({ mesh: [present], admin }, admin);
    await expect(calls.ofAdmin()).resolves.toBeDefined();
    await expect(calls.ofMesh()).resolves.toBeDefined();
    await expect(calls.ofPrincipal("acct_1/key_1")).resolves.toBeDefined();
  });

  test("without an admin token the operator's methods are closed to everybody", async () => {
    for (const token of [present, admin, ""]) {
      await expect(clients({ mesh: [present] }, token).ofAdmin()).rejects.toMatchObject({
        name: "RefusalError",
      });
    }
  });
});

describe("a token's rotation", () => {
  // The order of a rotation: the next token is accepted everywhere, then sent everywhere, then the former one is removed.
  const steps = [
    { mesh: [former] },
    { mesh: [former, present] },
    { mesh: [present, former] },
    { mesh: [present] },
  ];

  test("every process understands its neighbours of the step before and after", async () => {
    for (const [at, server] of steps.entries()) {
      for (const client of steps.slice(Math.max(0, at - 1), at + 2)) {
        await expect(clients(server, client.mesh[0]).ofMesh()).resolves.toBeDefined();
      }
    }
  });

  test("what was taken from the list is refused", async () => {
    await expect(clients({ mesh: [present] }, former).ofMesh()).rejects.toMatchObject(
      unauthenticated,
    );
  });

  test("a call that carries a token of its own keeps it", async () => {
    const interceptor = tokenInterceptor(present);
    const sent = new Headers({ authorization: "Bearer own" });
    await interceptor(async (req) => req as never)({ header: sent } as never);
    expect(sent.get("authorization")).toBe("Bearer own");
  });
});
