import {
  ModelKind,
  NativeAudio,
  OutputLimit,
  SafetyCheck,
  UpstreamProtocol,
  VideoMode,
} from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";

/** The file's words for the wire's enums. */
export const kinds = {
  chat: ModelKind.CHAT,
  image: ModelKind.IMAGE,
  video: ModelKind.VIDEO,
  speech: ModelKind.SPEECH,
  music: ModelKind.MUSIC,
} as const;

/** `upstreams.*.protocol`. */
export const protocols = {
  openai: UpstreamProtocol.OPENAI,
  "chat-completions": UpstreamProtocol.CHAT_COMPLETIONS,
  genmesh: UpstreamProtocol.GENMESH,
  builtin: UpstreamProtocol.BUILTIN,
} as const;

/** `upstreams.*.outputLimit`. */
export const outputLimits = {
  max_tokens: OutputLimit.MAX_TOKENS,
  max_completion_tokens: OutputLimit.MAX_COMPLETION_TOKENS,
  max_output_tokens: OutputLimit.MAX_OUTPUT_TOKENS,
  none: OutputLimit.NONE,
} as const;

/** `videoOptions[].modes[]`. */
export const modes = { t2v: VideoMode.T2V, i2v: VideoMode.I2V } as const;

/** `safetyCheck.*`, and its absence. */
export const safetyChecks = {
  unsaid: SafetyCheck.UNSPECIFIED,
  applied: SafetyCheck.APPLIED,
  none: SafetyCheck.NONE,
  standard: SafetyCheck.STANDARD,
} as const;

/** `nativeAudio`. */
export const nativeAudios = {
  none: NativeAudio.NONE,
  mono: NativeAudio.MONO,
  stereo: NativeAudio.STEREO,
} as const;
