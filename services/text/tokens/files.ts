import type { ChatSpec } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { usualSecondTokens, usualSoundTokensAtLeast } from "../base/limits.ts";
import { bytesPerToken } from "./count.ts";

/** A PDF, which upstream alone reads, or a sound by what its bytes say. */
export type MeasuredFile = { kind: "pdf"; bytes: number } | { kind: "audio"; seconds: number };

/** Tokens of a file. */
export interface FileTokens {
  /** When upstream reports none. */
  estimate: number;
  /** For a hold, and for a caller that leaves. */
  most: number;
  /** That count against the context window: what is certain. */
  least: number;
}

/**
 * Tokens of a file. A PDF has no bound that can be told from outside, so it may fill the window; where upstream reports nothing it is taken
 * for as many tokens as a text of its size. A sound is its seconds.
 */
export function fileTokens(file: MeasuredFile, spec: ChatSpec): FileTokens {
  if (file.kind === "audio") return soundTokens(file.seconds, Number(spec.audioTokensPerSecond));
  const window = Number(spec.maxInputTokens);
  const estimate = Math.min(window, Math.ceil(file.bytes / bytesPerToken));
  return { estimate, most: window, least: 0 };
}

function soundTokens(exact: number, said: number): FileTokens {
  const seconds = Math.ceil(exact);
  if (said > 0) return { estimate: seconds * said, most: seconds * said, least: seconds * said };
  return {
    estimate: seconds * usualSecondTokens.estimate,
    most: Math.max(seconds * usualSecondTokens.most, usualSoundTokensAtLeast),
    least: 0,
  };
}
