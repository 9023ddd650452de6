import { mkdtemp, rm } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import type { FastifyInstance } from "fastify";
import { pino } from "pino";
import { createCatalogView } from "#common/agreements/catalog-client.ts";
import { createPeers } from "#common/agreements/peers.ts";
import type { TextPort } from "#common/agreements/text-port.ts";
import { createWireText } from "#common/agreements/text-wire.ts";
import { randomIds } from "#kit/base/ids.ts";
import { createMetrics, type Metrics } from "#kit/base/metrics.ts";
import { accessInterceptor, tokenInterceptor } from "#kit/rpc/access.ts";
import { createDirectTransport } from "#kit/rpc/direct-transport.ts";
import { serverErrorInterceptor } from "#kit/rpc/interceptors.ts";
import { rpcService } from "#kit/rpc/service.ts";
import { createPayers } from "#kit/share/payers.ts";
import { openFolderBlobs } from "#kit/store/blobs/folder.ts";
import type { BlobStore } from "#kit/store/blobs.ts";
import { createWorkshop } from "#kit/threads/workshop.ts";
import type { ManualClock } from "#kit/time/clock.ts";
import type { CreateKeyRequestSchema } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import { BillingService } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { MediaService } from "#proto/genmesh/media/v1/media_service_pb.ts";
import { TextService } from "#proto/genmesh/text/v1/text_service_pb.ts";
import { createAdmission } from "../../gateway/admission/index.ts";
import { buildGateway } from "../../gateway/app.ts";
import type { GatewaySettings } from "../../gateway/context.ts";
import { createCatalog } from "../../services/catalog/index.ts";
import { createAuthWorld } from "../contract/keys.world.ts";

/** The services behind the gateway of a test. */
export interface EdgeParts {
  text?: Partial<ServiceImpl<typeof TextService>>;
  /** The text service of the same process, in place of `text` for its answers. */
  port?: TextPort;
  media?: Partial<ServiceImpl<typeof MediaService>>;
  billing?: Partial<ServiceImpl<typeof BillingService>>;
  settings?: GatewaySettings;
  /** Called for every internal call, with its method and headers. */
  called?: (method: string, headers: Headers) => void;
  cutOff?: AbortSignal;
  notReady?: () => string | undefined;
}

/** The gateway of a test. It is listening, and has a key with all rights. */
export interface EdgeWorld extends AsyncDisposable {
  app: FastifyInstance;
  port: number;
  /** One more gateway in front of the same services, with other settings where they are given. */
  another(settings?: GatewaySettings, port?: number): Promise<FastifyInstance>;
  /** The operator's clients of auth. */
  admin: Awaited<ReturnType<typeof createAuthWorld>>["admin"];
  key: string;
  accountId: string;
  keyId: string;
  clock: ManualClock;
  blobs: BlobStore;
  metrics: Metrics;
  /** Parsed lines of the log so far. */
  log: Record<string, unknown>[];
  /** A further key of the account. */
  makeKey(options: MessageInitShape<typeof CreateKeyRequestSchema>): Promise<string>;
  /** The key of a further account. */
  makeAccount(): Promise<string>;
  /** Sends a request with the key. Headers of `init` take precedence. */
  ask(path: string, init?: RequestInit): Promise<Response>;
  /** Posts JSON with the key. */
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Response>;
}

/** The token with which operators sign in at the gateway. */
export const edgeAdminToken = "admin-token-of-the-edge";

const catalogFile = fileURLToPath(new URL("../../deploy/catalog.yaml", import.meta.url));

/** Auth and catalog are real. A test scripts text, media and billing by the contract. */
export async function startEdge(parts: EdgeParts = {}): Promise<EdgeWorld> {
  await using stack = new AsyncDisposableStack();
  const log: Record<string, unknown>[] = [];
  const logger = pino(
    { base: null, level: "debug" },
    { write: (line) => void log.push(JSON.parse(line)) },
  );
  const auth = stack.use(await createAuthWorld());
  const { clock } = auth;
  const metrics = createMetrics();
  const workshop = stack.use(createWorkshop());
  const catalog = stack.use(
    createCatalog({ file: catalogFile, clock, log: logger, metrics: createMetrics(), workshop }),
  );
  await catalog.start();
  const services = [
    ...auth.auth.rpc,
    ...catalog.rpc,
    rpcService(TextService, (parts.text ?? {}) as ServiceImpl<typeof TextService>),
    rpcService(MediaService, (parts.media ?? {}) as ServiceImpl<typeof MediaService>),
    rpcService(BillingService, (parts.billing ?? {}) as ServiceImpl<typeof BillingService>),
  ];
  const transport = createDirectTransport({
    services: () => services,
    clientInterceptors: [
      tokenInterceptor("mesh-token"),
      (next) => (request) => {
        parts.called?.(request.method.name, request.header);
        return next(request);
      },
    ],
    serverInterceptors: [
      serverErrorInterceptor({ log: logger, ids: randomIds }),
      accessInterceptor({ mesh: ["mesh-token"], admin: edgeAdminToken }),
    ],
  });
  const peers = createPeers(() => transport);
  const view = stack.use(createCatalogView({ catalog: peers.catalog, clock, log: logger }));
  const admission = stack.use(createAdmission({ auth: peers.auth, clock, log: logger, metrics }));
  await Promise.all([view.ready(), admission.ready]);
  const folder = await mkdtemp(join(tmpdir(), "genmesh-edge-"));
  stack.defer(() => rm(folder, { recursive: true }));
  const blobs = await openFolderBlobs({ folder, clock, ids: randomIds });
  const build = async (
    settings: GatewaySettings,
    { metrics, ending, port }: { metrics: Metrics; ending: AsyncDisposableStack; port: number },
  ) => {
    const app = await buildGateway({
      peers,
      text: parts.port ?? createWireText(peers.text),
      admission,
      catalog: view,
      blobs,
      clock,
      ids: randomIds,
      log: logger,
      metrics,
      payers: createPayers({ clock }),
      workshop,
      notReady: parts.notReady ?? (() => undefined),
      settings,
      ...(parts.cutOff ? { cutOff: parts.cutOff } : {}),
    });
    ending.defer(() => {
      app.server.closeAllConnections();
      return app.close();
    });
    await app.listen({ host: "127.0.0.1", port });
    return app;
  };
  const { settings = {} } = parts;
  const app = await build(settings, { metrics, ending: stack, port: 0 });
  const { port } = app.server.address() as AddressInfo;
  const made = await auth.admin.createAccount({ name: "the caller" });
  const accountId = made.account?.accountId ?? "";
  const owned = stack.move();
  const ask: EdgeWorld["ask"] = (path, init = {}) =>
    fetch(`http://127.0.0.1:${port}${path}`, {
      redirect: "manual",
      ...init,
      headers: { authorization: `Bearer ${made.secret}`, ...init.headers },
    });
  return {
    app,
    port,
    another: (given = {}, port = 0) =>
      build({ ...settings, ...given }, { metrics: createMetrics(), ending: owned, port }),
    admin: auth.admin,
    key: made.secret,
    accountId,
    keyId: made.key?.keyId ?? "",
    clock,
    blobs,
    metrics,
    log,
    makeKey: async (options) => (await auth.admin.createKey({ ...options, accountId })).secret,
    makeAccount: async () => (await auth.admin.createAccount({ name: "another" })).secret,
    ask,
    post: (path, body, headers = {}) =>
      ask(path, {
        method: "POST",
        body: typeof body === "string" ? body : JSON.stringify(body),
        headers: { "content-type": "application/json", ...headers },
      }),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
