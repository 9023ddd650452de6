// Tokens of PDFs and audio, as estimates and as bounds. `patches.ts` has those of images.

import type { ChatSpec } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { usualSecondTokens, usualSoundTokensAtLeast } from "../base/limits.ts";
import { bytesPerToken } from "./count.ts";

/** A PDF, which only the upstream reads, or audio as its bytes show it. */
export type MeasuredFile = { kind: "pdf"; bytes: number } | MeasuredAudio;

/** `seconds`: the length in its container. `mostSeconds`: the greatest length that its bytes can have. */
type MeasuredAudio = { kind: "audio"; seconds: number; mostSeconds: number };

/** Tokens of a file. */
export interface FileTokens {
  /** Used where the upstream reports none. */
  estimate: number;
  /** Used for a hold. */
  held: number;
  /** Used for a caller that leaves. */
  most: number;
  /** Tokens that certainly count against the context window. */
  least: number;
}

/**
 * Tokens of a file. A PDF has no bound that can be seen from outside, so it may fill the window. Where the upstream reports nothing, a
 * PDF counts as a text of its size. Audio counts with the seconds in its container. Its hold is for the seconds that its bytes can
 * have.
 */
export function fileTokens(file: MeasuredFile, spec: ChatSpec): FileTokens {
  if (file.kind === "audio") return soundTokens(file, Number(spec.audioTokensPerSecond));
  const window = Number(spec.maxInputTokens);
  const estimate = Math.min(window, Math.ceil(file.bytes / bytesPerToken));
  return { estimate, held: window, most: window, least: 0 };
}

function soundTokens({ seconds, mostSeconds }: MeasuredAudio, said: number): FileTokens {
  const tokens = (exact: number, perSecond: number) => Math.ceil(exact) * perSecond;
  const mostOf = (exact: number) =>
    said > 0
      ? tokens(exact, said)
      : Math.max(tokens(exact, usualSecondTokens.most), usualSoundTokensAtLeast);
  return {
    estimate: tokens(seconds, said || usualSecondTokens.estimate),
    held: mostOf(mostSeconds),
    most: mostOf(seconds),
    least: tokens(seconds, said),
  };
}
