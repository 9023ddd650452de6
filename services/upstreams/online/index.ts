// Checks a catalog against its upstreams for `genmesh catalog check --online`, and for a probe of one upstream. Each protocol has
// its own check.

import { turn } from "#kit/base/in-turns.ts";
import type { FaultPath, FoundFault } from "#kit/base/valid-parts.ts";
import type {
  Model,
  ModelCall,
  Snapshot,
  Upstream,
} from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { checkAnthropicOnline, listOfAnthropic } from "../anthropic/online.ts";
import type { CallContext } from "../call.ts";
import { checkComfyUiOnline } from "../comfyui/online.ts";
import { checkElevenLabsOnline, listOfElevenLabs } from "../elevenlabs/online.ts";
import { checkFalOnline } from "../fal/online.ts";
import { checkDeclaredOnline } from "../jobs/online.ts";
import { type SampleRequest, sampleRequests } from "../jobs/requests.ts";
import { checkListedOnline, listOfOpenAi } from "../openai/online.ts";
import { type ProtocolName, protocolName } from "../protocols.ts";
import { checkReplicateOnline } from "../replicate/online.ts";
import type { ModelList } from "./lists.ts";
import { createRead, type Read } from "./read.ts";

/** A fault of a model, or of one of its calls where that is given. */
export interface OnlineFault extends FoundFault {
  call?: ModelCall;
}

/** Compares a model with its description at one of its upstreams. Generates nothing. Never rejects. */
export type OnlineCheck = (asked: {
  upstream: Upstream;
  model: Model;
  read: Read;
  secrets: CallContext["secrets"];
}) => Promise<OnlineFault[]>;

/** The check of each protocol. The built-in models need no server. */
const checks: Readonly<Record<Exclude<ProtocolName, "builtin">, OnlineCheck>> = {
  openai: checkListedOnline,
  anthropic: checkAnthropicOnline,
  "chat-completions": checkListedOnline,
  genmesh: checkListedOnline,
  fal: checkFalOnline,
  replicate: checkReplicateOnline,
  comfyui: checkComfyUiOnline,
  elevenlabs: checkElevenLabsOnline,
  jobs: checkDeclaredOnline,
};

/** Lists of models, by the protocols that have one. */
const lists: { readonly [P in ProtocolName]?: ModelList } = {
  openai: listOfOpenAi,
  "chat-completions": listOfOpenAi,
  genmesh: listOfOpenAi,
  anthropic: listOfAnthropic,
  elevenlabs: listOfElevenLabs,
};

/** The list of models that an upstream's protocol has. Undefined: it has none. */
export function listOf({ protocol }: Upstream): ModelList | undefined {
  const name = protocolName(protocol);
  return name && lists[name];
}

/**
 * Asks the upstreams of a catalog whether they have what its active models need. That costs nothing: it reads descriptions, and
 * generates nothing. Each fault comes once, with its path in the file and the upstream where it was found. `only`: the name of the one
 * upstream that is asked.
 */
export async function checkOnline(
  { models, upstreams }: Pick<Snapshot, "models" | "upstreams">,
  context: CallContext,
  { read = createRead(context), only }: { read?: Read; only?: string } = {},
): Promise<FoundFault[]> {
  const { secrets } = context;
  const faults: FoundFault[] = [];
  const known = new Set<string>();
  for (const [index, model] of models.entries()) {
    if (!model.active) continue;
    for (const name of namesOf(model)) {
      const upstream = upstreams[name];
      const protocol = upstream && protocolName(upstream.protocol);
      if (!protocol || protocol === "builtin" || (only ?? name) !== name) continue;
      const own = model.shares.find((one) => one.upstream === name)?.upstreamModel;
      const offered = own ? { ...model, upstreamModel: own } : model;
      const asked = { upstream, model: offered, read, secrets };
      // A document that is known already is no wait, and comparing it takes some ms.
      await turn();
      for (const { call, path, message } of await checks[protocol](asked)) {
        const inCall = call ? ["call", ...(call.mode === "" ? [] : [call.mode])] : [];
        const at: FaultPath = ["models", index, ...inCall, ...path];
        const fault = { path: at, message: `${message} (${name})` };
        const text = JSON.stringify(fault);
        if (!known.has(text)) faults.push(fault);
        known.add(text);
      }
    }
  }
  return faults;
}

/** The upstreams of a model, in the order in which they are tried. */
export const namesOf = (model: Model): string[] => [model.upstream, ...model.fallbackUpstreams];

/** The requests that a catalog's active models would send to upstreams whose HTTP it declares. No upstream is asked, and no key is read. */
export function requestsOf({ models, upstreams }: Snapshot): (SampleRequest & { model: string })[] {
  return models.flatMap((model) => {
    const names = model.active ? namesOf(model) : [];
    return names.flatMap((name) => {
      const upstream = upstreams[name];
      if (!upstream || protocolName(upstream.protocol) !== "jobs") return [];
      return sampleRequests(upstream, model).map((request) => ({ model: model.id, ...request }));
    });
  });
}
