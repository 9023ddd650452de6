// Answers an operator in the console whether an upstream accepts its key and has the catalog's models. The text service runs it.

import type { Snapshot } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { type CallContext, keyOf } from "../call.ts";
import { checkOnline, listOf, namesOf } from "./index.ts";
import { type ModelList, readList } from "./lists.ts";
import { createRead, type Read } from "./read.ts";

/** The answers of an upstream to an operator who asks whether its key works, and which models it has. */
export interface UpstreamProbe {
  /** Has its protocol a list of models? */
  hasList: boolean;
  /** The reason why the list could not be read, or "". */
  listFault: string;
  /** Names in the list, sorted, at most {@link maxListed}. */
  listedModels: string[];
  /** Number of names in the list. */
  listed: number;
  /** Number of active models of the catalog that it serves. */
  models: number;
  /** Differences between these models and the upstream, at most {@link maxFaults}. */
  faults: { model: string; message: string }[];
}

/** Bytes of a document. A larger one would keep the event loop of a service for long. OpenRouter's list of some 400 models has 0.7 MiB. */
const maxBytes = 2 * 1024 * 1024;
/** Names that are answered: more than an operator reads. */
const maxListed = 500;
/** Characters of a name that is answered. Longer ones are left out. */
const maxNameCharacters = 200;
/** Differences that are answered. */
const maxFaults = 100;

/**
 * Asks an upstream of the catalog, with its key. Generates nothing. Undefined where the catalog has no such upstream. Once `signal`
 * aborts, documents that are still unread count as differences. Never rejects.
 */
export async function probeUpstream(
  snapshot: Snapshot,
  name: string,
  context: CallContext,
  signal: AbortSignal,
): Promise<UpstreamProbe | undefined> {
  const upstream = Object.hasOwn(snapshot.upstreams, name) ? snapshot.upstreams[name] : undefined;
  if (!upstream) return undefined;
  const read = createRead(context, { maxBytes, signal });
  const list = listOf(upstream);
  const served = snapshot.models.filter((one) => one.active && namesOf(one).includes(name));
  const found = await checkOnline(snapshot, context, { read, only: name });
  const faults = found.slice(0, maxFaults).map(({ path, message }) => ({
    model: snapshot.models[Number(path[1])]?.id ?? "",
    message,
  }));
  const told = list ? await listedBy(read, upstream, list) : { listFault: "", names: [] };
  const key = await keyOf(context, upstream);
  // An upstream could name the key that it was sent.
  const names = told.names.filter(
    (one) => one.length <= maxNameCharacters && (!key || !one.includes(key)),
  );
  return {
    hasList: list !== undefined,
    listFault: told.listFault,
    listedModels: names.toSorted().slice(0, maxListed),
    listed: told.names.length,
    models: served.length,
    faults,
  };
}

async function listedBy(read: Read, upstream: Snapshot["upstreams"][string], list: ModelList) {
  const { value, fault } = await readList(read, upstream, list);
  return fault === undefined
    ? { listFault: "", names: [...new Set(list.names(value))] }
    : { listFault: `its list of models ${fault}`, names: [] };
}
