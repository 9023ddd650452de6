import type { ChatSpec } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { usualSecondTokens, usualSoundTokensAtLeast } from "../base/limits.ts";
import { bytesPerToken } from "./count.ts";

/** A PDF, which upstream alone reads, or a sound by what its bytes say. */
export type MeasuredFile = { kind: "pdf"; bytes: number } | MeasuredAudio;

/** `seconds` as its container says, `mostSeconds` as its bytes can be. */
type MeasuredAudio = { kind: "audio"; seconds: number; mostSeconds: number };

/** Tokens of a file. */
export interface FileTokens {
  /** When upstream reports none. */
  estimate: number;
  /** For a hold. */
  held: number;
  /** For a caller that leaves. */
  most: number;
  /** That count against the context window: what is certain. */
  least: number;
}

/**
 * Tokens of a file. A PDF has no bound that can be told from outside, so it may fill the window; where upstream reports nothing it is taken
 * for as many tokens as a text of its size. A sound is the seconds that its container says; held are those that its bytes can be.
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
