import type { ChatSpec } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { usualPageTokens, usualSecondTokens, usualSoundTokensAtLeast } from "../limits.ts";
import { bytesPerToken } from "./count.ts";

/** A PDF or a sound, by what its bytes say. */
export type MeasuredFile =
  /** `textBytes` undefined: the text on its pages has no bound that can be told. */
  | { kind: "pdf"; pages: number; textBytes: number | undefined }
  | { kind: "audio"; seconds: number };

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
 * Tokens of a file as models count it: of a PDF the text of its pages and a picture of each, of a sound its seconds. A token of text
 * covers at least a byte. Text without a known bound may fill the window.
 */
export function fileTokens(file: MeasuredFile, spec: ChatSpec): FileTokens {
  if (file.kind === "audio") return soundTokens(file.seconds, Number(spec.audioTokensPerSecond));
  const { pages, textBytes } = file;
  const said = Number(spec.pdfTokensPerPage);
  const window = Number(spec.maxInputTokens);
  const text = Math.ceil((textBytes ?? 0) / bytesPerToken);
  return {
    estimate: Math.min(window, pages * (said || usualPageTokens.estimate) + text),
    most: Math.min(window, pages * (said || usualPageTokens.most) + (textBytes ?? window)),
    least: pages * said,
  };
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
