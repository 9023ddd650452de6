// Makes the services of a role, and gives each what it needs: stores, peers, upstreams, catalog.

import { availableParallelism } from "node:os";
import { isAbsolute } from "node:path";
import { createCatalogView, type LiveCatalog } from "#common/agreements/catalog-client.ts";
import type { HoldOperations } from "#common/agreements/hold-client.ts";
import type { Peers } from "#common/agreements/peers.ts";
import type { TextPort } from "#common/agreements/text-port.ts";
import type { ImageVerifier } from "#kit/images/index.ts";
import type { GuardedFetcher } from "#kit/outside/index.ts";
import type { Service } from "#kit/rpc/service.ts";
import { tracedHttpClient } from "#kit/telemetry/http-client.ts";
import type { UpstreamAccounts } from "#kit/upstream/accounts.ts";
import type { HttpClient } from "#kit/upstream/client.ts";
import { readPemFile } from "#kit/upstream/key-file.ts";
import type { MediaCommonDeps } from "../media/context.ts";
import type { Notices } from "../notices/index.ts";
import type { UpstreamHistoryKeeper } from "../upstreams/health/history.ts";
import type { UpstreamHealth } from "../upstreams/health/index.ts";
import type { Pools } from "../upstreams/pools/index.ts";
import type { HostContext } from "./context.ts";
import type { Role } from "./roles.ts";
import type { Scratch } from "./scratch.ts";
import { type Stores, storeOf } from "./stores.ts";
import type { UpstreamKeys } from "./upstream-keys.ts";
import { version } from "./version.ts";

/** Processes that decode images: one a core, at most four, and at least two, so that one account leaves a place to others. */
const imageProcesses = Math.max(2, Math.min(4, availableParallelism()));
/** The worst image of 50 megapixels took 320 MiB while it was decoded. Some exceed the limit for a while until they are measured. */
const imageMemoryMb = 448;
/** Milliseconds for one image. The worst images take about 1,000 of a core. */
const imageTimeoutMs = 10_000;

/** Threads of the builtin renderer: one a core, and few enough to leave the event loop a core. */
const renderThreads = Math.max(1, Math.min(2, availableParallelism()));

/** The parts of which services are made. */
export interface ServiceDeps {
  stores: Stores;
  scratch: Scratch;
  peers: Peers;
  /** The view of this process. Default: one that is made at its first use. */
  catalog?: LiveCatalog;
  keys: UpstreamKeys;
  /** Owns the parts that the services get. */
  stack: AsyncDisposableStack;
}

/** A part of the mesh that is a service. */
type Part = Exclude<Role, "all" | "gateway">;

/** The services of a process. */
export interface Services {
  /** In the order in which they start. */
  list: readonly Service[];
  /** The text service for callers of this process. Undefined: it is elsewhere. */
  text: TextPort | undefined;
}

/** Makes the services of a process. Only the code of the role is loaded. */
export async function createServices(context: HostContext, deps: ServiceDeps): Promise<Services> {
  const { role } = context.config;
  const parts = role === "all" ? allParts : allParts.filter((part) => part === role);
  const tools = createTools(context, deps);
  const list: Service[] = [];
  for (const part of parts) list.push(await makers[part](context, deps, tools));
  if (deps.stores.database) list.push(await tools.notices());
  return { list, text: tools.text };
}

type Maker = (context: HostContext, deps: ServiceDeps, tools: Tools) => Promise<Service>;

const makers: Readonly<Record<Part, Maker>> = {
  async catalog(context, { stores, keys: { seal } }) {
    const { createCatalog } = await import("../catalog/index.ts");
    const { file, isStored } = context.config.catalog;
    const database = isStored ? storeOf(stores, "database") : undefined;
    return createCatalog({ ...context, file, database, seal });
  },
  async auth(context, { stores }) {
    const { createAuth } = await import("../auth/index.ts");
    return createAuth({ ...context, database: storeOf(stores, "database") });
  },
  async billing(context, { stores, peers }, tools) {
    const { createBilling } = await import("../billing/index.ts");
    const database = storeOf(stores, "database");
    const billing = createBilling({ ...context, peers, database });
    // An operation of an embedded database ends by itself. Any other needs the wire's limits of time.
    if (database.kind === "sqlite") tools.holds = billing.holds;
    return billing;
  },
  async text(context, { stores, peers, keys: { secret: secrets }, stack }, tools) {
    const { createText } = await import("../text/index.ts");
    const { createTokenCounter } = await import("../text/tokens/count.ts");
    const { createLargeAnswers } = await import("../text/large/index.ts");
    const { createBuiltinText } = await import("../builtin/index.ts");
    const { createTextUpstreams } = await import("../upstreams/text/index.ts");
    const { allowPrivate } = context.config.references;
    const large = createLargeAnswers(context.workshop);
    const text = createText({
      ...context,
      peers,
      holds: tools.holds,
      catalog: tools.catalog(),
      database: storeOf(stores, "database"),
      upstreams: createTextUpstreams({
        ...context,
        secrets,
        http: await tools.http(),
        accounts: await tools.accounts(),
        pools: await tools.pools(),
        builtin: stack.use(createBuiltinText(context)),
        lift: large.lift,
        plain: large.plain,
      }),
      health: await tools.health(),
      history: await tools.history(),
      probeUpstream: async (snapshot, name, signal) => {
        const { probeUpstream } = await import("../upstreams/online/probe.ts");
        const call = { secrets, http: await tools.http() };
        return await probeUpstream(snapshot, name, call, signal);
      },
      large,
      counter: stack.use(createTokenCounter(context.workshop)),
      images: await tools.images(),
      outside: await tools.outside(),
      allowPrivateReferences: allowPrivate,
    });
    tools.text = text.port;
    return text;
  },
  async media(context, { scratch }, tools) {
    const { createMedia } = await import("../media/index.ts");
    return createMedia({
      ...(await tools.media()),
      workshop: context.workshop,
      verifier: await tools.images(),
      fetcher: await tools.outside(),
      notices: (await tools.notices()).methods,
      tempFolder: scratch("uploads"),
    });
  },
  async "media-worker"({ config }, { scratch }, tools) {
    const { createMediaWorker } = await import("../media/index.ts");
    const key = (name: string) => (isAbsolute(name) ? readPemFile(name) : config.secret(name));
    const marking = { key, tempFolder: scratch("marks"), version };
    return createMediaWorker({ ...(await tools.media()), workers: config.workers, marking });
  },
};

/** Every part. A later one needs those before it: text and media take the holds that billing has left in the tools. */
const allParts: readonly Part[] = ["catalog", "auth", "billing", "text", "media", "media-worker"];

/** Parts that several services of a process use. Each is made at its first use. */
interface Tools {
  /** Billing, where it is in this process, without a wire. Set when billing is made, before text and media. */
  holds: HoldOperations | undefined;
  /** Text, where it is in this process, without a wire. */
  text: TextPort | undefined;
  catalog(): LiveCatalog;
  images(): Promise<ImageVerifier>;
  outside(): Promise<GuardedFetcher>;
  /** Reports problems with the operator's accounts at upstreams. */
  accounts(): Promise<UpstreamAccounts>;
  /** Knows which upstreams and keys rest. */
  pools(): Promise<Pools>;
  /** Answers the health of upstreams, and reports this process's own calls. */
  health(): Promise<UpstreamHealth>;
  /** Answers the last days of upstreams, and writes this process's own calls down. */
  history(): Promise<UpstreamHistoryKeeper>;
  /** Finds notices for the operator. Every process with a database does so. */
  notices(): Promise<Notices>;
  /** Connections to configured upstreams. */
  http(): Promise<HttpClient>;
  /** The parts that media's API and its worker share. In one process each notices the other's changes at once. */
  media(): Promise<MediaCommonDeps>;
}

function createTools(context: HostContext, deps: ServiceDeps): Tools {
  const { config } = context;
  const { stores, peers, stack } = deps;
  const tools: Tools = {
    holds: undefined,
    text: undefined,
    catalog: once(
      () =>
        deps.catalog ??
        stack.use(
          createCatalogView({ ...context, catalog: peers.catalog, onKeys: deps.keys.take }),
        ),
    ),
    images: once(async () => {
      const { createImageVerifier } = await import("#kit/images/index.ts");
      return stack.use(
        createImageVerifier({
          processes: imageProcesses,
          memoryMb: imageMemoryMb,
          timeoutMs: imageTimeoutMs,
          isPaying: context.payers.isPaying,
          clock: context.clock,
        }),
      );
    }),
    outside: once(async () => {
      const { createGuardedFetcher } = await import("#kit/outside/index.ts");
      return createGuardedFetcher({ allowPrivate: config.references.allowPrivate });
    }),
    accounts: once(async () => {
      const { createUpstreamAccounts } = await import("#kit/upstream/accounts.ts");
      return createUpstreamAccounts(context);
    }),
    pools: once(async () => {
      const { createPools } = await import("../upstreams/pools/index.ts");
      return createPools({ ...context, accounts: await tools.accounts() });
    }),
    health: once(async () => {
      const { createUpstreamHealth } = await import("../upstreams/health/index.ts");
      const store = await healthStore(stores);
      const process = context.ids.make("process", 12);
      return stack.use(createUpstreamHealth({ ...context, store, process }));
    }),
    notices: once(async () => {
      const { createNotices } = await import("../notices/index.ts");
      const { role, alerts } = config;
      // Of what all processes share, only those look that answer operators.
      const shared = role === "all" || role === "media";
      return createNotices({
        ...context,
        ...{ role, ways: alerts, database: storeOf(stores, "database") },
        ...(shared ? { health: await tools.health(), catalog: tools.catalog() } : {}),
      });
    }),
    history: once(async () => {
      const { createUpstreamHistory } = await import("../upstreams/health/history.ts");
      const { createHistoryStore } = await import("../upstreams/health/history-store.ts");
      const store = createHistoryStore(storeOf(stores, "database"));
      return stack.use(createUpstreamHistory({ ...context, store }));
    }),
    http: once(async () => {
      const { createHttpClient } = await import("#kit/upstream/client.ts");
      return stack.use(tracedHttpClient(createHttpClient()));
    }),
    media: once(async () => {
      const { createMediaShared } = await import("../media/index.ts");
      await Promise.all([tools.health(), tools.history()]);
      return {
        ...context,
        peers,
        holds: tools.holds,
        catalog: tools.catalog(),
        database: storeOf(stores, "database"),
        blobs: storeOf(stores, "blobs"),
        queue: storeOf(stores, "queue"),
        upstreams: await createUpstreams(context, deps, tools),
        retentionDays: config.retentionDays,
        shared: createMediaShared(context),
      };
    }),
  };
  return tools;
}

async function createUpstreams(
  context: HostContext,
  { stack, scratch, keys }: ServiceDeps,
  tools: Tools,
) {
  const { createBuiltinRenderer } = await import("../builtin/index.ts");
  const { createMediaUpstreams } = await import("../upstreams/media/index.ts");
  return createMediaUpstreams({
    ...context,
    secrets: keys.secret,
    http: await tools.http(),
    accounts: await tools.accounts(),
    pools: await tools.pools(),
    verifier: await tools.images(),
    fetcher: await tools.outside(),
    renderer: stack.use(createBuiltinRenderer({ ...context, threads: renderThreads })),
    tempDir: scratch("renders"),
  });
}

/** An embedded database belongs to one process. */
async function healthStore(stores: Stores) {
  const database = storeOf(stores, "database");
  if (database.kind === "sqlite") return (await import("../upstreams/health/store.ts")).noOthers;
  const { createMongoHealthStore } = await import("../upstreams/health/store-mongo.ts");
  return createMongoHealthStore(database.mongo);
}

function once<T>(make: () => T): () => T {
  let made: { value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}
