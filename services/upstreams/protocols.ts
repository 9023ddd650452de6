// The one table of all protocols, with what each can do. The gateway and the catalog read it, and load no driver by it.

import { type Upstream, UpstreamProtocol } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { anthropic } from "./anthropic/capabilities.ts";
import { builtin } from "./builtin/capabilities.ts";
import type { Capabilities, JobAbilities, ServedKind } from "./capabilities.ts";
import { chatCompletions } from "./chat-completions/capabilities.ts";
import { comfyui } from "./comfyui/capabilities.ts";
import { elevenlabs } from "./elevenlabs/capabilities.ts";
import { fal } from "./fal/capabilities.ts";
import { genmesh } from "./genmesh/capabilities.ts";
import { declaredAbilities } from "./jobs/abilities.ts";
import { jobs } from "./jobs/capabilities.ts";
import { openai } from "./openai/capabilities.ts";
import { replicate } from "./replicate/capabilities.ts";

/**
 * Every upstream protocol by its name in the catalog. The tables of drivers (text/drivers.ts, media/drivers.ts) are complete by type. A
 * row that claims more than its folder can do does not compile. They are separate files, because the gateway and the catalog read this
 * table and load no driver. catalog-rules.ts is separate, too, because the gateway loads no rules.
 */
export const protocols = {
  openai,
  anthropic,
  genmesh,
  "chat-completions": chatCompletions,
  builtin,
  fal,
  replicate,
  comfyui,
  elevenlabs,
  jobs,
} as const satisfies Record<string, Capabilities>;

/** A protocol's name in the catalog. */
export type ProtocolName = keyof typeof protocols;

/** Names of the protocols that serve a kind. */
export type ProtocolServing<K extends ServedKind> = {
  [N in ProtocolName]: K extends keyof (typeof protocols)[N]["serves"] ? N : never;
}[ProtocolName];

/** Every protocol's name. */
export const protocolNames = Object.keys(protocols) as ProtocolName[];

const names = new Map<UpstreamProtocol, ProtocolName>(
  protocolNames.map((name) => [protocols[name].wire, name]),
);

/** The name of a protocol on the wire. Undefined for one that only a newer version knows. */
export function protocolName(protocol: UpstreamProtocol): ProtocolName | undefined {
  return names.get(protocol);
}

/** The abilities of a protocol. Undefined for one that only a newer version knows. */
export function capabilitiesOf(protocol: UpstreamProtocol): Capabilities | undefined {
  const name = names.get(protocol);
  return name && protocols[name];
}

/** Does it serve this operation of text? */
export function servesText(
  protocol: UpstreamProtocol,
  operation: "responses" | "compact" | "chat" | "messages" | "embeddings" | "transcriptions",
): boolean {
  const { chat, embedding, transcription } = capabilitiesOf(protocol)?.serves ?? {};
  if (operation === "transcriptions") return transcription === true;
  if (operation === "embeddings") return embedding === true;
  if (operation === "compact" && chat?.lacksCompact) return false;
  const isInBoth = operation === "chat" || operation === "messages";
  return chat !== undefined && (isInBoth || chat.responses);
}

/** Does it speak Chat Completions itself? Other upstreams get requests in the Responses format, or in one made from that. */
export function isNativeChat(protocol: UpstreamProtocol): boolean {
  return capabilitiesOf(protocol)?.serves.chat?.chat === "native";
}

/** Does it speak Messages? */
export function speaksMessages(protocol: UpstreamProtocol): boolean {
  return protocol === UpstreamProtocol.ANTHROPIC;
}

/** The abilities of an upstream for jobs of a kind. Undefined where it serves none, or only a newer version knows its protocol. */
export function jobAbilitiesOf(
  upstream: Pick<Upstream, "protocol" | "jobs">,
  kind: "image" | "video" | "music",
): JobAbilities | undefined {
  const abilities = capabilitiesOf(upstream.protocol)?.serves[kind];
  if (!abilities || upstream.protocol !== UpstreamProtocol.JOBS) return abilities;
  return { ...abilities, ...declaredAbilities(upstream) };
}

/** May a job of the kind be requested again there without being paid for twice? */
export function isRepeatable(
  upstream: Pick<Upstream, "protocol" | "jobs">,
  kind: "image" | "video" | "music",
): boolean {
  return jobAbilitiesOf(upstream, kind)?.submit === "repeatable";
}

/** Is it generated in this process? */
export function isLocal(protocol: UpstreamProtocol): boolean {
  return capabilitiesOf(protocol)?.isLocal === true;
}
