// Finds the price of a request and the parts of it that have prices of their own, such as audio, images and cache. Preparing
// needs this for the hold.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import {
  AutoCache,
  type ChatSpec,
  type Upstream,
} from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { familyOfTool } from "../../upstreams/text/judging/tool-calls.ts";
import type { TextOperation } from "../../upstreams/text/port.ts";
import type { TakenMedia } from "../request/media.ts";
import { fileTokens } from "../tokens/files.ts";
import type { MediaTokens } from "../tokens/input-bound.ts";
import { holdCalls } from "./held-calls.ts";
import type { HeldContent, PriceList } from "./price-list.ts";
import type { TextPrice, TokenBounds } from "./pricing.ts";

/** The parts of a request that may have prices of their own. */
export interface PricedParts {
  operation: TextOperation;
  /** Types of the tools that the upstream carries out. */
  hostedTypes: readonly string[];
  body: JsonObject;
  media: TakenMedia;
  mediaTokens: MediaTokens;
  spec: ChatSpec;
  /** Those that may get the request. */
  upstreams: readonly Pick<Upstream, "autoCache">[];
}

/** The price of a request, and what is held and counted of its content beside text. */
export interface Terms {
  price: TextPrice;
  held?: HeldContent;
  counted?: Pick<TokenBounds, "countedAudio" | "countedImages">;
}

/** The terms of a request to a model that has a price list. Writes the bound of calls of tools into the body. */
export function listedTerms(price: TextPrice, list: PriceList, parts: PricedParts): Terms {
  const { operation, body, media, mediaTokens, spec, hostedTypes, upstreams } = parts;
  const audio = { held: 0, most: 0 };
  for (const file of media.files) {
    if (file.kind !== "audio") continue;
    const { held, most } = fileTokens(file, spec);
    audio.held += held;
    audio.most += most;
  }
  // A PDF counts as images, because servers show its pages to their models.
  const images = { held: mediaTokens.held - audio.held, most: mediaTokens.most - audio.most };
  const hasAudio = audio.held > 0 && prices(list, "audioInput", "cachedAudioInput");
  const hasImages = images.held > 0 && prices(list, "imageInput");
  const isNamed = operation === "messages" && hostedTypes.length > 0;
  const own = isNamed ? ofNamedTools(price, list, hostedTypes) : price;
  const toolCalls = hostedTypes.length > 0 && holdCalls(body, list, spec, parts);
  const isAsked = upstreams.some(({ autoCache }) => autoCache === AutoCache.LONG);
  const asksLong = prices(list, "cacheWriteLong") && (isAsked || asksLongCache(body));
  return {
    price: asksLong ? { ...own, asksLongCache: true } : own,
    held: {
      ...(hasAudio && { audioInput: audio.held }),
      ...(hasImages && { imageInput: images.held }),
      ...(asksFor(body, "audio") && { audioOutput: true }),
      ...((asksFor(body, "image") || hostedTypes.includes("image_generation")) && {
        imageOutput: true,
      }),
      ...(toolCalls && { toolCalls }),
    },
    counted: {
      ...(hasAudio && { countedAudio: audio.most }),
      ...(hasImages && { countedImages: images.most }),
    },
  };
}

/**
 * A price with calls of those tools alone that the request names. A search of Messages may run code over its finds, which costs nothing
 * there.
 */
function ofNamedTools(
  price: TextPrice,
  { toolCalls = {}, ...list }: PriceList,
  hostedTypes: readonly string[],
): TextPrice {
  const families = new Set(hostedTypes.map(familyOfTool));
  const named = Object.entries(toolCalls).filter(([family]) => families.has(family));
  return {
    ...price,
    list: named.length > 0 ? { ...list, toolCalls: Object.fromEntries(named) } : list,
  };
}

function prices(list: PriceList, ...names: (keyof PriceList)[]): boolean {
  // A row may name a price that the base leaves to another class.
  const rows: readonly Partial<PriceList>[] = [list, ...(list.longInput ?? [])];
  return rows.some((row) => names.some((name) => row[name] !== undefined));
}

/** Is the output to be of this kind, too? */
function asksFor({ modalities }: JsonObject, kind: string): boolean {
  return Array.isArray(modalities) && modalities.includes(kind);
}

/** Does a body ask for entries that stay in the cache for longer than usual, at the price of long writes? */
function asksLongCache(body: JsonObject): boolean {
  const { prompt_cache_retention: retention, prompt_cache_options: options } = body;
  const isKeptLong = typeof retention === "string" && !/^in[-_]memory$/.test(retention);
  const isAskedLong = isJsonObject(options) && isLong(options.ttl);
  return isKeptLong || isAskedLong || hasLongBlock(body, 0);
}

/** Minutes that an entry stays at the usual price. */
const usualMinutes = 30;
/** Minutes of the units in which a time is written. */
const minutes: Readonly<Record<string, number>> = { s: 1 / 60, m: 1, h: 60, d: 1_440 };

/** A time that cannot be read counts as long. */
function isLong(ttl: JsonValue | undefined): boolean {
  if (ttl === undefined || ttl === null) return false;
  const [, count, unit = ""] = /^(\d{1,6})([smhd])$/.exec(typeof ttl === "string" ? ttl : "") ?? [];
  return count === undefined || Number(count) * (minutes[unit] ?? 0) > usualMinutes;
}

/** Levels of a body at which a cache is asked for: an item, its parts, those within them, and those within a document of these. */
const maxDepth = 9;

function hasLongBlock(value: JsonValue, depth: number): boolean {
  if (depth > maxDepth || typeof value !== "object" || value === null) return false;
  if (Array.isArray(value)) return value.some((one) => hasLongBlock(one, depth + 1));
  const { cache_control: control } = value;
  if (isJsonObject(control) && isLong(control.ttl)) return true;
  for (const name in value) {
    if (hasLongBlock(value[name] as JsonValue, depth + 1)) return true;
  }
  return false;
}
