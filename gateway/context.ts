// Types alone. `GatewayDeps` is what the host hands to the gateway. `Edge` is what the gateway hands on to each route, with an
// `Admission` by which a route has the caller's key checked.

import type { RequestListener, Server, ServerOptions } from "node:http";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { CatalogView } from "#common/agreements/catalog-client.ts";
import type { Peers } from "#common/agreements/peers.ts";
import type { TextPort } from "#common/agreements/text-port.ts";
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
import type { Silences } from "./sse.ts";
import type { ResponseSockets } from "./websocket/index.ts";

/** The known facts of a caller whose key was admitted. */
export interface Admitted {
  principal: Principal;
  /** For the services, which enforce it: deferred refusal, allowed models, limit. */
  admission: MessageInitShape<typeof AdmissionSchema>;
  /** Rate headers of the answer (`x-ratelimit-*`). */
  headers: Record<string, string>;
  /**
   * The refusal behind `admission.refuseWith`, with its times. Where the service answers with that reason, the caller gets this one,
   * because the service does not know when to try again.
   */
  refusal?: RefusalError;
  /** The scopes of the key, for routes that offer more to some keys. */
  scopes: ReadonlySet<Scope>;
  /** Is its account suspended, so that it may only read? */
  accountSuspended?: boolean;
}

/**
 * The checks that admission leaves to the service in `admission.refuseWith`. The scope is left where the service checks the body's
 * syntax before. With an idempotency key the rate is left too, because a recorded answer comes before both. That applies to as many
 * requests above the rate as the rate has.
 */
export type Deferral = "nothing" | "scope" | "scope and rate";

/** A request counts against the key's requests a minute, or against ten times as many counts of tokens, which cost nothing. */
export type RateKind = "requests" | "counts";

/** Decides whether a key may make a request. */
export interface Admission {
  /**
   * Checks the Authorization header. Refuses with INVALID_API_KEY, PERMISSION_DENIED, RATE_LIMIT_EXCEEDED or SERVICE_UNAVAILABLE,
   * except for deferred checks. The rate is checked before the scope. Scope UNSPECIFIED: any valid key. At once, unless auth must be
   * asked first.
   */
  admit(
    authorization: string | undefined,
    scope: Scope,
    deferral: Deferral,
    rate?: RateKind,
  ): Admitted | Promise<Admitted>;
  /** The same for a key that is known to be valid at this moment. A session of the console uses it. */
  admitKey(
    key: AdmittedKey,
    scope: Scope,
    deferral: Deferral,
    rate?: RateKind,
  ): Admitted | Promise<Admitted>;
  /** Refuses an Authorization header that is not valid any more, as `admit` does, and counts no request. */
  check(authorization: string | undefined): Promise<void>;
  /** Calls `listen` with the ids of keys that have changed. Undefined: any key may have. */
  onKeysChanged(listen: (keyIds: readonly string[] | undefined) => void): void;
}

/** The catalog in force. */
interface CatalogSource {
  /** Refuses with SERVICE_UNAVAILABLE before the first snapshot has come. */
  current(): Pick<CatalogView, "snapshot" | "activeModels">;
}

/** The settings that an operator can choose. */
export interface GatewaySettings {
  /** Base of every URL in an answer, with or without `/v1`. Default: from the Host header. */
  publicUrl?: string;
  /** Addresses (comma-separated, CIDR allowed) whose `X-Forwarded-*` headers are used. Default: none. */
  trustProxy?: string;
  /** Origins whose pages may call the API, or `*` for all. Default: none. */
  corsOrigins?: readonly string[];
  /** Bytes of request bodies that are held at once. Default: 512 MiB. */
  maxBytesInFlight?: number;
  /** Connections that are held at once. Default: `connectionLimits`. */
  connections?: Omit<ConnectionBounds, "isShared">;
  /** Files that are sent to callers at once. Default: `downloadShare`. */
  downloads?: FairShareBounds;
  /** The form of accounts in the traces that this process sends to a collector. Undefined: it sends none. */
  traces?: "id" | "hash" | undefined;
  /** The console. Absent: it is off. */
  console?: ConsoleSettings;
  /** How responses are offered over WebSockets. False: they are not. Default: `socketBounds`. */
  webSockets?: SocketSettings | false;
  /** For `/.well-known/security.txt`. Absent: there is no such file. */
  security?: SecurityContact;
}

/** The bounds of WebSockets that an operator can choose. */
export interface SocketSettings {
  /** Sockets that are open at once. */
  most?: number;
  /** Responses that one socket has under way at once, each in a lane of its own. */
  inFlight?: number;
}

/** Where finders of a vulnerability report it (RFC 9116). */
export interface SecurityContact {
  /** URIs, the preferred one first. */
  contacts: readonly string[];
  /** The time after which the contacts are out of date, as RFC 3339 writes it. */
  expires: string;
}

/** The settings of the console that an operator can choose. */
export interface ConsoleSettings {
  /** The admin token, with which operators sign in. Absent: this gateway has no admin power. */
  operatorToken?: string;
  /** Sign-in at an identity provider. Absent: with a secret alone. */
  oidc?: OidcSettings;
}

/** An identity provider, and the meaning of its claims here. */
export interface OidcSettings {
  /** The provider's own URL. */
  issuer: string;
  clientId: string;
  clientSecret: string;
  /** The claim that holds the account's id. */
  accountClaim: string;
  /** The claim that holds `member`, `owner` or `operator`. */
  roleClaim: string;
}

/** The parts that the gateway needs. */
export interface GatewayDeps {
  peers: Peers;
  /** Answers text requests. */
  text: TextPort;
  admission: Admission;
  catalog: CatalogSource;
  /** Only for reading. */
  blobs: Pick<BlobStore, "openRead">;
  clock: Clock;
  ids: Ids;
  log: Logger;
  metrics: Metrics;
  /** Gets each account that got an answer that costs money. An account that it does not know has smaller shares. */
  payers: Payers;
  /** Threads for work that would block the event loop. */
  workshop: Workshop;
  /** Undefined when requests will be served. Otherwise one line with the reason (starting, a peer away, draining). */
  notReady: () => string | undefined;
  /** Aborts when the time for draining is over. Open streams then end with an error event. */
  cutOff?: AbortSignal;
  settings: GatewaySettings;
  /** Makes the server, for one with TLS. Default: plain HTTP. */
  createServer?: (options: ServerOptions, handler: RequestListener) => Server;
}

/** The parts that routes need. */
export interface Edge extends GatewayDeps {
  bodies: BodyReader;
  /** Reads the content of bodies. */
  reader: JsonReader;
  /** Shares the files that are being sent. */
  downloads: Downloads;
  /** Shares the bytes of repeated answers that are being sent. */
  repeated: Downloads;
  readers: ReaderWatch;
  silences: Silences;
  /** Shares the lists and reports that are being read. */
  reads: FairShare;
  urls: PublicUrls;
  events: EdgeEvents;
  sockets: ResponseSockets;
}

declare module "fastify" {
  interface FastifyInstance {
    /** The WebSockets of this edge, for the process that ends them. */
    sockets: ResponseSockets;
  }
  interface FastifyContextConfig {
    /** Scope that a key needs. Absent: any valid key. */
    scope?: Scope;
    /** True where the service behind it handles an Idempotency-Key, and so a deferred refusal. */
    idempotent?: boolean;
    /** Absent: `requests`. */
    rate?: RateKind;
    /** True where it searches an account's data: see `plugins/reads.ts`. */
    reads?: boolean;
  }
  interface FastifyRequest {
    /** The admitted caller. Null outside `/v1`. */
    caller: Admitted | null;
    /** The refusal that it got, for the log. Null where there was none. */
    refusal: RefusalError | null;
    /** True where the body may only be sent after a 100 (Continue). */
    awaitsContinue: boolean;
  }
  interface FastifyReply {
    /** Called when the answer's connection closes: see `whenClosed`. Null: no function waits for that yet. */
    whenClosed: (() => void)[] | null;
    /** Bytes of the request's body that are kept until the answer is over. */
    heldBytes: number;
    /** Its account's turn at reading. Null where it needs none. */
    readTurn: Turn | null;
  }
}
