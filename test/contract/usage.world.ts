import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { Interceptor, ServiceImpl } from "@connectrpc/connect";
import { pino } from "pino";
import { createCatalogView } from "#common/agreements/catalog-client.ts";
import { createPeers, type Peers } from "#common/agreements/peers.ts";
import { randomIds } from "#kit/base/ids.ts";
import { createMetrics, type Metrics } from "#kit/base/metrics.ts";
import { createImageVerifier } from "#kit/images/index.ts";
import { createGuardedFetcher } from "#kit/outside/index.ts";
import { accessInterceptor, tokenInterceptor } from "#kit/rpc/access.ts";
import { createDirectTransport } from "#kit/rpc/direct-transport.ts";
import { serverErrorInterceptor } from "#kit/rpc/interceptors.ts";
import { callHeaders, type Principal } from "#kit/rpc/principal.ts";
import { type RpcService, rpcService } from "#kit/rpc/service.ts";
import { openSqlite, type SqliteDatabase } from "#kit/store/sqlite.ts";
import { createWorkshop } from "#kit/threads/workshop.ts";
import { type ManualClock, manualClock } from "#kit/time/clock.ts";
import { Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import {
  CatalogService,
  type ChatSpecSchema,
  ModelKind,
  type Snapshot,
  SnapshotSchema,
  UpstreamProtocol,
} from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { AdmissionSchema } from "#proto/genmesh/common/v1/access_pb.ts";
import { MediaService } from "#proto/genmesh/media/v1/media_service_pb.ts";
import { Operation } from "#proto/genmesh/text/v1/text_service_pb.ts";
import { createBilling } from "../../services/billing/index.ts";
import { createText } from "../../services/text/index.ts";
import { createLargeAnswers, type LargeAnswers } from "../../services/text/large/index.ts";
import { createTokenCounter, type TokenCounter } from "../../services/text/tokens/count.ts";
import type { TextUpstreams } from "../../services/upstreams/text/port.ts";

/** The principal of these tests. */
export const principal: Principal = { accountId: "acct_test", keyId: "key_test" };
/** The first balance of the wallet in USD micros. */
export const funds = 1_000_000_000n;

const tokens = { mesh: ["mesh-token"], admin: "admin-token" };
const silent = pino({ level: "silent" });
/** One for all worlds of a file, like in a process. */
const workshop = createWorkshop();
const counter = createTokenCounter(workshop);
const large = createLargeAnswers(workshop);

/** Settings of a world. */
export interface TextWorldOptions {
  upstreams: TextUpstreams;
  /** Default: a database in memory. With a file, another world may be opened on it after a death. */
  file?: string;
  clock?: ManualClock;
  snapshot?: Snapshot;
  media?: Partial<ServiceImpl<typeof MediaService>>;
  /** Is the wallet to be filled? Default true. */
  isNew?: boolean;
  allowPrivateReferences?: boolean;
  /** Default: one that counts. */
  counter?: TokenCounter;
  /** Default: threads for large answers. */
  large?: Pick<LargeAnswers, "run">;
  /** Stands between text and its peers. */
  between?: Interceptor;
  /** Called for each write that either service sends to its database. With `lazy` no request waits for it. */
  onWrite?: (lazy: boolean) => void;
}

/** Real billing and text over one database. The test scripts the catalog and media. */
export interface TextWorld extends AsyncDisposable {
  clock: ManualClock;
  metrics: Metrics;
  peers: Peers;
  admin: Peers;
  text: ReturnType<typeof createText>;
  /** Sends a request for JSON. Gives the answer or the refusal. */
  ask(operation: keyof typeof Operation, body: unknown, options?: AskOptions): Promise<Asked>;
  /** Sends a request, and streams where its body wants that. */
  stream(operation: keyof typeof Operation, body: unknown, options?: AskOptions): Streamed;
  /** Billing's figures of the wallet. */
  wallet(): Promise<{ reserved: bigint; spent: bigint; spendable: bigint }>;
  /** From now on no caller reaches it, and its clock does not move. Its running work is lost. */
  die(): void;
}

export interface AskOptions {
  key?: string;
  principal?: Principal;
  signal?: AbortSignal;
  admission?: MessageInitShape<typeof AdmissionSchema>;
}

export interface Asked {
  json: Record<string, unknown>;
  replayed: boolean;
}

/** A stream in the gateway's view. */
export interface Streamed extends AsyncDisposable {
  /** The next message's text. Undefined at the end. */
  next(): Promise<string | undefined>;
  /** All that is left, as one text. */
  rest(): Promise<string>;
  replayed(): boolean;
}

/** Starts a world. */
export async function createTextWorld(options: TextWorldOptions): Promise<TextWorld> {
  const clock = options.clock ?? manualClock();
  const metrics = createMetrics();
  const opened = openSqlite(options.file ?? ":memory:");
  const sqlite: SqliteDatabase = {
    ...opened,
    write(work, how) {
      options.onWrite?.(how?.lazy ?? false);
      return opened.write(work, how);
    },
  };
  const database = { kind: "sqlite", sqlite } as const;
  const services: RpcService[] = [
    catalogOf(options.snapshot ?? snapshotWith()),
    rpcService(MediaService, (options.media ?? {}) as ServiceImpl<typeof MediaService>),
  ];
  let isDead = false;
  const transport = (token: string, between: Interceptor[] = []) =>
    createDirectTransport({
      services: () => {
        if (isDead) throw new Error("this process is dead");
        return services;
      },
      clientInterceptors: [tokenInterceptor(token), ...between],
      serverInterceptors: [
        serverErrorInterceptor({ log: silent, ids: randomIds }),
        accessInterceptor(tokens),
      ],
    });
  const peers = createPeers(() => transport("mesh-token"));
  const admin = createPeers(() => transport("admin-token"));
  const common = { clock, ids: randomIds, log: silent, metrics, database, peers };
  const verifier = createImageVerifier({ processes: 1, memoryMb: 512, timeoutMs: 10_000 });
  const catalog = createCatalogView({ ...common, catalog: peers.catalog });
  const billing = createBilling(common);
  const text = createText({
    ...common,
    workshop,
    peers: createPeers(() => transport("mesh-token", options.between ? [options.between] : [])),
    catalog,
    upstreams: options.upstreams,
    health: { read: async () => ({ upstreams: [], processes: 1 }) },
    history: { read: async () => [] },
    probeUpstream: async () => undefined,
    counter: options.counter ?? counter,
    large: options.large ?? large,
    images: verifier,
    outside: createGuardedFetcher({ allowPrivate: options.allowPrivateReferences ?? false }),
    allowPrivateReferences: options.allowPrivateReferences ?? false,
  });
  services.push(...billing.rpc, ...text.rpc);
  await billing.start();
  await text.start();
  while (text.notReady()) await new Promise((resolve) => setImmediate(resolve));
  if (options.isNew !== false) {
    await admin.billing.grant({
      accountId: principal.accountId,
      unit: Unit.USD_MICROS,
      amount: funds,
      operationId: "opening",
    });
  }
  return {
    clock,
    metrics,
    peers,
    admin,
    text,
    ...askingOf(peers),
    async wallet() {
      const { usdMicros } = await peers.billing.getBalance({ accountId: principal.accountId });
      const { reserved = 0n, spent = 0n, spendable = 0n } = usdMicros ?? {};
      return { reserved, spent, spendable };
    },
    die() {
      isDead = true;
    },
    async [Symbol.asyncDispose]() {
      await verifier[Symbol.asyncDispose]();
      await catalog[Symbol.asyncDispose]();
      if (!isDead) {
        await text[Symbol.asyncDispose]();
        await billing[Symbol.asyncDispose]();
      }
      // The last commit of this turn.
      await new Promise((resolve) => setImmediate(resolve));
      database.sqlite[Symbol.dispose]();
    },
  };
}

function askingOf(peers: Peers): Pick<TextWorld, "ask" | "stream"> {
  const callOf = (body: unknown, options: AskOptions) => ({
    request: {
      body: typeof body === "string" ? Buffer.from(body) : Buffer.from(JSON.stringify(body)),
      ...(options.key === undefined ? {} : { idempotencyKey: options.key }),
      ...(options.admission ? { admission: options.admission } : {}),
    },
    call: {
      headers: callHeaders(options.principal ?? principal, "req_test"),
      ...(options.signal ? { signal: options.signal } : {}),
    },
  });
  return {
    async ask(operation, body, options = {}) {
      const { request, call } = callOf(body, options);
      const answer = await peers.text.generate(
        { ...request, operation: Operation[operation] },
        call,
      );
      return { json: JSON.parse(Buffer.from(answer.body).toString()), replayed: answer.replayed };
    },
    stream(operation, body, options = {}) {
      const gone = new AbortController();
      const signal = options.signal ? AbortSignal.any([gone.signal, options.signal]) : gone.signal;
      const { request, call } = callOf(body, { ...options, signal });
      const answer = peers.text.streamGenerate(
        { ...request, operation: Operation[operation] },
        call,
      );
      return readerOf(answer[Symbol.asyncIterator](), () => gone.abort());
    },
  };
}

function readerOf(
  messages: AsyncIterator<{
    part: { case?: string | undefined; value?: Uint8Array | undefined };
    replayed: boolean;
  }>,
  leave: () => void,
): Streamed {
  let replayed = false;
  const next = async () => {
    const step = await messages.next();
    if (step.done) return undefined;
    replayed ||= step.value.replayed;
    return Buffer.from(step.value.part.value ?? []).toString();
  };
  return {
    next,
    async rest() {
      let all = "";
      for (let piece = await next(); piece !== undefined; piece = await next()) all += piece;
      return all;
    },
    replayed: () => replayed,
    // Like a gateway whose caller has gone.
    async [Symbol.asyncDispose]() {
      leave();
    },
  };
}

/** The chat model of these tests: a dollar for a million input tokens, ten for output, ten cents for cached input. */
export function snapshotWith(
  spec: MessageInitShape<typeof ChatSpecSchema> = {},
  more: Pick<MessageInitShape<typeof SnapshotSchema>, "developerPrompt"> = {},
): Snapshot {
  const value = {
    maxInputTokens: 10_000n,
    maxOutputTokens: 1_000n,
    safetyMarginTokens: 100n,
    reasoningEfforts: ["low", "medium", "high"],
    reasoningAliases: { fast: "low", deep: "high" },
    inputModalities: ["text", "image"],
    tools: ["function", "web_search"],
    inputUsdMicrosPerMillionTokens: 1_000_000n,
    cachedInputUsdMicrosPerMillionTokens: 100_000n,
    outputUsdMicrosPerMillionTokens: 10_000_000n,
    ...spec,
  };
  const model = { id: "chat-1", name: "Chat", kind: ModelKind.CHAT, active: true, upstream: "up" };
  return create(SnapshotSchema, {
    version: "v1",
    developerPrompt: more.developerPrompt ?? "Be kind.",
    upstreams: {
      up: { name: "up", protocol: UpstreamProtocol.OPENAI, baseUrl: "http://up" },
      other: { name: "other", protocol: UpstreamProtocol.OPENAI, baseUrl: "http://other" },
      legacy: { name: "legacy", protocol: UpstreamProtocol.CHAT_COMPLETIONS },
      inline: { name: "inline", protocol: UpstreamProtocol.OPENAI, inlineImages: true },
    },
    models: [
      {
        ...model,
        upstreamModel: "gpt-oss",
        fallbackUpstreams: ["other"],
        spec: { case: "chat", value },
      },
      { ...model, id: "text-only", spec: { case: "chat", value: { ...value, ...noImages } } },
      { ...model, id: "plain", spec: { case: "chat", value: { ...value, ...nothingMore } } },
      { ...model, id: "legacy-1", upstream: "legacy", spec: { case: "chat", value } },
      { ...model, id: "inline-1", upstream: "inline", spec: { case: "chat", value } },
      { ...model, id: "other-1", upstream: "other", spec: { case: "chat", value } },
      { ...model, id: "asleep", active: false, spec: { case: "chat", value } },
      { ...model, id: "image-1", kind: ModelKind.IMAGE, spec: { case: "image", value: {} } },
    ],
  });
}

const noImages = { inputModalities: ["text"] };
const nothingMore = { ...noImages, reasoningEfforts: [], reasoningAliases: {}, tools: [] };

function catalogOf(snapshot: Snapshot): RpcService {
  return rpcService(CatalogService, {
    checkDraft: () => ({}),
    getText: () => ({}),
    listVersions: () => ({}),
    putInForce: () => ({}),
    listUpstreamKeys: () => ({}),
    setUpstreamKey: () => ({}),
    deleteUpstreamKey: () => ({}),
    getSnapshot: async () => ({ snapshot }),
    async *watchSnapshots(_request, { signal }) {
      yield { snapshot };
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    },
  });
}
