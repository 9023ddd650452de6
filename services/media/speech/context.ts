// Says what speech needs from media, opens its store, and names its files among the blobs.

import type { LiveCatalog } from "#common/agreements/catalog-client.ts";
import type { HoldClient } from "#common/agreements/hold-client.ts";
import type { Ids } from "#kit/base/ids.ts";
import type { Logger } from "#kit/base/logger.ts";
import type { Metrics } from "#kit/base/metrics.ts";
import { openDocuments } from "#kit/documents/open.ts";
import type { JsonReader } from "#kit/json-reader/index.ts";
import type { Payers } from "#kit/share/payers.ts";
import type { BlobStore } from "#kit/store/blobs.ts";
import type { Database } from "#kit/store/database.ts";
import type { Clock } from "#kit/time/clock.ts";
import type { LeaseTime } from "#kit/time/lease-time.ts";
import type { MediaUpstreams } from "../../upstreams/media/port.ts";
import type { SpeechEvents } from "./events.ts";
import type { SpeechStore } from "./store.ts";
import { createSpeechStore, speechComponent } from "./store-documents.ts";

/** Needs of speech from its process. */
export interface SpeechDeps {
  clock: Clock;
  ids: Ids;
  log: Logger;
  metrics: Metrics;
  database: Database;
  blobs: BlobStore;
  catalog: Pick<LiveCatalog, "current">;
  holds: HoldClient;
  upstreams: Pick<MediaUpstreams, "speak">;
  /** Judges the leases of other processes. */
  leaseTime: LeaseTime;
  /** Reads bodies. */
  reader: JsonReader;
  /** An account that does not pay has a smaller share. */
  payers?: Pick<Payers, "isPaying">;
  /** Ms for which speeches and their records are kept. Undefined: for ever. */
  retentionMs: number | undefined;
}

/** Needs of running and ending requests. */
export interface SpeechContext
  extends Omit<SpeechDeps, "database" | "log" | "metrics" | "payers" | "reader"> {
  store: SpeechStore;
  events: SpeechEvents;
  /** The name of this process in its requests' records. */
  owner: string;
}

/** The store of the requests. */
export interface OpenedSpeechStore {
  store: SpeechStore;
  /** Makes the table or the collection, and its indexes. The caller does this once, before all else. */
  prepare(): Promise<void>;
}

/** The store in the process's database. */
export function openSpeechStore(database: Database): OpenedSpeechStore {
  return {
    store: createSpeechStore(database),
    prepare: () => openDocuments(database, speechComponent),
  };
}

const prefix = "speech/";

/** The blob key of a request's speech. */
export function blobKeyOf(speechId: string): string {
  return `${prefix}${speechId}`;
}

/** The request of a blob key. Undefined where the key is not of speech. */
export function speechIdOf(blobKey: string): string | undefined {
  return blobKey.startsWith(prefix) ? blobKey.slice(prefix.length) : undefined;
}
