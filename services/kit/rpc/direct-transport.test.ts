import {
  Code,
  ConnectError,
  createClient,
  type HandlerContext,
  type ServiceImpl,
} from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { ErrorReason, RefusalError, refuse } from "#kit/base/errors.ts";
import { randomIds } from "#kit/base/ids.ts";
import { createLogger } from "#kit/base/logger.ts";
import { AuthService } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import { CatalogService } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { accessInterceptor, tokenInterceptor } from "./access.ts";
import { createDirectTransport } from "./direct-transport.ts";
import { serverErrorInterceptor } from "./interceptors.ts";
import { rpcService } from "./service.ts";

const tokens = { mesh: ["mesh-token-of-this-test"], admin: "admin-token-of-this-test" };

function clients(
  catalog: Partial<ServiceImpl<typeof CatalogService>>,
  token = "mesh-token-of-this-test",
) {
  const unused = () => refuse(ErrorReason.INTERNAL_ERROR);
  const auth = new Proxy({} as ServiceImpl<typeof AuthService>, { get: () => unused });
  const transport = createDirectTransport({
    services: () => [
      rpcService(CatalogService, catalog as ServiceImpl<typeof CatalogService>),
      rpcService(AuthService, auth),
    ],
    clientInterceptors: [tokenInterceptor(token)],
    serverInterceptors: [
      serverErrorInterceptor({ log: createLogger("silent"), ids: randomIds }),
      accessInterceptor(tokens),
    ],
  });
  return {
    catalog: createClient(CatalogService, transport),
    auth: createClient(AuthService, transport),
  };
}

async function failure(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => expect.unreachable("it should have failed"),
    (error: unknown) => error,
  );
}

async function drain(stream: AsyncIterable<unknown>): Promise<unknown[]> {
  const seen = [];
  for await (const one of stream) seen.push(one);
  return seen;
}

describe("the direct transport", () => {
  test("hands messages over", async () => {
    const { catalog } = clients({
      getSnapshot: (req) => ({ snapshot: { version: `after ${req.knownVersion}` } }),
    });
    const { snapshot } = await catalog.getSnapshot({ knownVersion: "v1" });
    expect(snapshot?.version).toBe("after v1");
  });

  test("a refusal arrives as itself, with its facts", async () => {
    const { catalog } = clients({
      getSnapshot: () =>
        refuse(ErrorReason.MODEL_NOT_FOUND, { param: "model", metadata: { model: "m" } }),
    });
    const error = await failure(catalog.getSnapshot({}));
    expect(error).toBeInstanceOf(RefusalError);
    expect(error).toMatchObject({
      reason: ErrorReason.MODEL_NOT_FOUND,
      param: "model",
      metadata: { model: "m" },
    });
  });

  test("a refusal between two messages of a stream arrives as itself", async () => {
    const { catalog } = clients({
      async *watchSnapshots() {
        yield { snapshot: { version: "v1" } };
        refuse(ErrorReason.SERVICE_UNAVAILABLE);
      },
    });
    const error = await failure(drain(catalog.watchSnapshots({})));
    expect(error).toMatchObject({ name: "RefusalError", reason: ErrorReason.SERVICE_UNAVAILABLE });
  });

  test("an unknown error leaves without its text", async () => {
    const { catalog } = clients({
      getSnapshot() {
        throw new Error("the secret is swordfish");
      },
    });
    const error = (await failure(catalog.getSnapshot({}))) as RefusalError;
    expect(error.reason).toBe(ErrorReason.INTERNAL_ERROR);
    expect(error.metadata.incident).toMatch(/^incident_/);
    expect(error.message).not.toContain("swordfish");
  });

  test("a deadline ends the call and aborts the handler", async () => {
    const aborted = Promise.withResolvers<void>();
    const { catalog } = clients({
      getSnapshot: (_: unknown, context: HandlerContext) => {
        context.signal.addEventListener("abort", () => aborted.resolve());
        return new Promise<never>(() => {});
      },
    });
    const error = await failure(catalog.getSnapshot({}, { timeoutMs: 20 }));
    expect(error).toMatchObject({ reason: ErrorReason.SERVICE_UNAVAILABLE });
    await aborted.promise;
  });

  test("leaving a stream early aborts its handler", async () => {
    const left = Promise.withResolvers<void>();
    const { catalog } = clients({
      async *watchSnapshots(_, context) {
        context.signal.addEventListener("abort", () => left.resolve());
        for (;;) yield { snapshot: { version: "v1" } };
      },
    });
    const call = new AbortController();
    for await (const _ of catalog.watchSnapshots({}, { signal: call.signal })) {
      call.abort();
      break;
    }
    await left.promise;
  });

  test("no timer outlives its call, ended or cancelled", async () => {
    const { catalog } = clients({
      getSnapshot: () => ({}),
      async *watchSnapshots() {
        for (let i = 0; i < 3; i++) yield { snapshot: { version: `v${i}` } };
      },
    });
    const timers = () => process.getActiveResourcesInfo().filter((one) => one === "Timeout").length;
    const timeoutMs = 3_600_000;
    const before = timers();
    await catalog.getSnapshot({}, { timeoutMs });
    await drain(catalog.watchSnapshots({}, { timeoutMs }));
    const call = new AbortController();
    for await (const _ of catalog.watchSnapshots({}, { timeoutMs, signal: call.signal })) {
      call.abort();
      break;
    }
    expect(timers()).toBe(before);
  });

  test("a stream's deadline ends it", async () => {
    const { catalog } = clients({
      async *watchSnapshots() {
        yield { snapshot: { version: "v1" } };
        await new Promise<never>(() => {});
      },
    });
    const error = await failure(drain(catalog.watchSnapshots({}, { timeoutMs: 20 })));
    expect(error).toMatchObject({ reason: ErrorReason.SERVICE_UNAVAILABLE });
  });

  test("a caller's own cancellation comes back as such", async () => {
    const { catalog } = clients({ getSnapshot: () => new Promise<never>(() => {}) });
    const call = new AbortController();
    const error = failure(catalog.getSnapshot({}, { signal: call.signal }));
    call.abort();
    expect(ConnectError.from(await error).code).toBe(Code.Canceled);
  });
});

describe("access", () => {
  const served = { getSnapshot: () => ({}) };

  test.each([
    ["an unknown token", "some-other-token-here", ErrorReason.CALLER_UNAUTHENTICATED],
    ["no token", "", ErrorReason.CALLER_UNAUTHENTICATED],
  ])("%s is refused", async (_, token, reason) => {
    const error = await failure(clients(served, token).catalog.getSnapshot({}));
    expect(error).toMatchObject({ reason });
  });

  test("what makes keys takes the admin token and nothing else", async () => {
    const { auth } = clients(served);
    const error = await failure(auth.createAccount({ name: "x" }));
    expect(error).toMatchObject({ reason: ErrorReason.CALLER_FORBIDDEN });
    const admitted = await failure(clients(served, tokens.admin).auth.createAccount({ name: "x" }));
    expect(admitted).toMatchObject({ reason: ErrorReason.INTERNAL_ERROR });
  });
});
