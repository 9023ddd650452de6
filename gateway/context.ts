import type { RequestListener, Server, ServerOptions } from "node:http";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { CatalogView } from "#common/agreements/catalog-client.ts";
import type { Peers } from "#common/agreements/peers.ts";
import type { RefusalError } from "#kit/base/errors.ts";
import type { Ids } from "#kit/base/ids.ts";
import type { Logger } from "#kit/base/logger.ts";
import type { Metrics } from "#kit/base/metrics.ts";
import type { ConnectionBounds } from "#kit/edge/connection-bounds.ts";
import type { JsonReader } from "#kit/json-reader/index.ts";
import type { Principal } from "#kit/rpc/principal.ts";
import type { FairShare, FairShareBounds, Turn } from "#kit/share/fair-share.ts";
import type { Payers } from "#kit/share/payers.ts";
import type { BlobStore } from "#kit/store/blobs.ts";
import type { Workshop } from "#kit/threads/workshop.ts";
import type { Clock } from "#kit/time/clock.ts";
import type { AdmissionSchema, Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { AdmittedKey } from "./admission/key-cache.ts";
import type { BodyReader } from "./body.ts";
import type { Downloads } from "./downloads.ts";
import type { EdgeEvents } from "./events.ts";
import type { PublicUrls } from "./public-url.ts";
import type { ReaderWatch } from "./readers.ts";

/** What is known of a caller whose key was admitted. */
export interface Admitted {
  principal: Principal;
  /** For the services, which enforce it: deferred refusal, allowed models, limit. */
  admission: MessageInitShape<typeof AdmissionSchema>;
  /** Rate headers of the answer (`x-ratelimit-*`). */
  headers: Record<string, string>;
  /**
   * What `admission.refuseWith` stands for, with its times: where the service answers with that reason, this is what
   * the caller gets, for the service does not know when to come back.
   */
  refusal?: RefusalError;
  /** What the key may use, for routes that offer more to some. */
  scopes: ReadonlySet<Scope>;
  /** Its account is suspended: it may only read. */
  accountSuspended?: boolean;
}

/**
 * What admission leaves to the service in `admission.refuseWith`: the scope, where the service checks the body's syntax
 * before; with an idempotency key the rate too, because a recorded answer comes before both, for as many requests above it as
 * the rate has.
 */
export type Deferral = "nothing" | "scope" | "scope and rate";

/** Decides whether a key may make a request. */
export interface Admission {
  /**
   * Checks the Authorization header. Refuses with INVALID_API_KEY, PERMISSION_DENIED, RATE_LIMIT_EXCEEDED or
   * SERVICE_UNAVAILABLE, but for what is deferred. The rate comes before the scope. Scope UNSPECIFIED: any valid key.
   */
  admit(authorization: string | undefined, scope: Scope, deferral: Deferral): Promise<Admitted>;
  /** The same for a key that is known to be valid at this moment: a session of the console acts with it. */
  admitKey(key: AdmittedKey, scope: Scope, deferral: Deferral): Promise<Admitted>;
}

/** The catalog in force. */
interface CatalogSource {
  /** Refuses with SERVICE_UNAVAILABLE before the first snapshot has come. */
  current(): Pick<CatalogView, "snapshot" | "activeModels">;
}

/** What an operator may choose. */
export interface GatewaySettings {
  /** Base of every URL in an answer, with or without `/v1`; default: from the Host header. */
  publicUrl?: string;
  /** Addresses (comma-separated, CIDR allowed) whose `X-Forwarded-*` count; default: none. */
  trustProxy?: string;
  /** Origins whose pages may call the API, or `*` for all; default: none. */
  corsOrigins?: readonly string[];
  /** Bytes of request bodies held at once; default 512 MiB. */
  maxBytesInFlight?: number;
  /** Connections held at once; default `connectionLimits`. */
  connections?: Omit<ConnectionBounds, "isShared">;
  /** Files on their way to callers at once; default `downloadShare`. */
  downloads?: FairShareBounds;
  /** The console; absent: it is off. */
  console?: ConsoleSettings;
}

/** What an operator may choose of the console. */
export interface ConsoleSettings {
  /** The admin token, by which operators sign in; absent: this gateway holds no admin power. */
  operatorToken?: string;
  /** Sign-in at an identity provider; absent: by a secret alone. */
  oidc?: OidcSettings;
}

/** An identity provider, and what its claims mean here. */
export interface OidcSettings {
  /** Its URL, as it names itself. */
  issuer: string;
  clientId: string;
  clientSecret: string;
  /** The claim that holds the account's id. */
  accountClaim: string;
  /** The claim that holds `member`, `owner` or `operator`. */
  roleClaim: string;
}

/** What the gateway needs. */
export interface GatewayDeps {
  peers: Peers;
  admission: Admission;
  catalog: CatalogSource;
  /** Only read from. */
  blobs: Pick<BlobStore, "openRead">;
  clock: Clock;
  ids: Ids;
  log: Logger;
  metrics: Metrics;
  /** Hear of each account that was given what costs money; one that they do not know has smaller shares. */
  payers: Payers;
  /** Threads for what would keep the event loop. */
  workshop: Workshop;
  /** Undefined when requests will be served; else one line that says why not (starting, a peer away, draining). */
  notReady: () => string | undefined;
  /** Aborts when the time for draining is over: streams that are still open then end with an error event. */
  cutOff?: AbortSignal;
  settings: GatewaySettings;
  /** Makes the server, for one with TLS; default: plain HTTP. */
  createServer?: (options: ServerOptions, handler: RequestListener) => Server;
}

/** What routes work with. */
export interface Edge extends GatewayDeps {
  bodies: BodyReader;
  /** Reads what is in them. */
  reader: JsonReader;
  /** Shares the files on their way. */
  downloads: Downloads;
  /** Shares the bytes of repeated answers on their way. */
  repeated: Downloads;
  readers: ReaderWatch;
  /** Shares the lists and reports that are being read. */
  reads: FairShare;
  urls: PublicUrls;
  events: EdgeEvents;
}

declare module "fastify" {
  interface FastifyContextConfig {
    /** Scope that a key needs; absent: any valid key. */
    scope?: Scope;
    /** True where the service behind it honours an Idempotency-Key, and so a deferred refusal. */
    idempotent?: boolean;
    /** It looks through what its account has: see `plugins/reads.ts`. */
    reads?: boolean;
  }
  interface FastifyRequest {
    /** The admitted caller; null outside `/v1`. */
    caller: Admitted | null;
    /** What it was refused with, for the log; null where it was not. */
    refusal: RefusalError | null;
    /** True where the body may only be sent after a 100 (Continue). */
    awaitsContinue: boolean;
  }
  interface FastifyReply {
    /** Called when the answer's connection closes; see `whenClosed`. Null: nothing waits for that yet. */
    whenClosed: (() => void)[] | null;
    /** Bytes of the request's body that are kept until the answer is over. */
    heldBytes: number;
    /** Its account's turn at reading; null where it needs none. */
    readTurn: Turn | null;
  }
}
