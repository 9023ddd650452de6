// Answers of the API, with the fields that the console reads. The OpenAPI document has all of them.

export type Role = "member" | "owner" | "operator";

export interface Session {
  role: Role;
  accountId: string | null;
  keyId: string | null;
  keyName: string | null;
  scopes: string[];
  /** Empty: all. */
  models: string[];
  createdAt: string;
  endsAt: string;
  idleEndsAt: string;
  oidc: boolean;
  /** The operator who signed in by name. Null: signed in otherwise. */
  operatorName: string | null;
}

export interface SignInOptions {
  oidc: { label: string; url: string } | null;
  operator: boolean;
}

export interface Wallet {
  availableUsdMicros: number;
  reservedUsdMicros: number;
  spendableUsdMicros: number;
  monthSpendUsdMicros: number;
  credits?: { available: number; reserved: number; spendable: number; monthSpent: number };
}

export interface Key {
  id: string;
  name: string;
  label?: string;
  disabled: boolean;
  scopes: string[];
  models: string[] | null;
  requestsPerMinute?: number;
  limitUsdMicros?: number | null;
  limitRemainingUsdMicros?: number | null;
  spentUsdMicros?: number | null;
  spentMonthUsdMicros?: number | null;
  limit_reset?: LimitReset | null;
  usage_daily?: number | null;
  usage_weekly?: number | null;
  lowBalanceUsdMicros?: number | null;
  expires_at?: string | null;
  created_at?: string;
  lastUsedAt?: string | null;
  formerSecretExpiresAt?: string | null;
  webhookUrl?: string | null;
}

/** The time at which a key's limit resets. Null beside a limit: never. */
export type LimitReset = "daily" | "weekly" | "monthly";

export interface BillingAlerts {
  lowBalanceUsdMicros: number | null;
  webhookUrl: string | null;
}

export type ModelKind =
  | "chat"
  | "image"
  | "video"
  | "speech"
  | "music"
  | "embedding"
  | "transcription";

export interface VideoOption {
  durationSeconds: number;
  resolution: string;
  modes: ("t2v" | "i2v")[];
  credits: number;
}

/** USD micros for a million tokens. An absent price is that of another class. */
export interface TokenPrices {
  inputUsdMicrosPerMillionTokens?: number;
  cachedInputUsdMicrosPerMillionTokens?: number;
  cacheWriteUsdMicrosPerMillionTokens?: number;
  cacheWriteLongUsdMicrosPerMillionTokens?: number;
  audioInputUsdMicrosPerMillionTokens?: number;
  cachedAudioInputUsdMicrosPerMillionTokens?: number;
  imageInputUsdMicrosPerMillionTokens?: number;
  outputUsdMicrosPerMillionTokens?: number;
  audioOutputUsdMicrosPerMillionTokens?: number;
  imageOutputUsdMicrosPerMillionTokens?: number;
}

export interface Pricing extends TokenPrices {
  longInput?: (TokenPrices & { aboveInputTokens: number })[];
  /** Percent. */
  servedTiers?: Record<string, number>;
  /** USD micros for a call. */
  toolCalls?: Record<string, number>;
  usdMicrosPerMillionCharacters?: number;
  usdMicrosPerMinute?: number;
}

export interface Model {
  id: string;
  kind: ModelKind;
  name: string;
  description?: string;
  default?: boolean;
  deprecatedAt?: string;
  shutdownDate?: string;
  maxInputTokens?: number;
  maxOutputTokens?: number;
  reasoningEfforts?: string[];
  inputModalities?: string[];
  tools?: boolean;
  pricing?: Pricing;
  creditPrice?: number;
  imageOptions?: { quality?: string; size?: string; credits: number }[];
  sizes?: string[];
  resolutions?: string[];
  availableAspectRatios?: string[];
  maxReferences?: number;
  /** Takes a mask of the first reference. */
  masks?: boolean;
  maxImages?: number;
  maxPromptCharacters?: number;
  videoOptions?: VideoOption[];
  t2vEnabled?: boolean;
  i2vEnabled?: boolean;
  modes?: string[];
  voices?: unknown[];
  formats?: string[];
  [field: string]: unknown;
}

export interface OutputFile {
  id: string;
  url: string;
  mimeType: string;
  sizeBytes: number;
  width?: number;
  height?: number;
  durationSeconds?: number;
}

export interface Job {
  id: string;
  object: "image.job" | "video.job" | "music.job";
  status: "queued" | "running" | "completed" | "failed" | "cancelled";
  statusUrl: string;
  terminal: boolean;
  model?: string;
  progress?: number;
  creditsReserved: number;
  creditsCharged?: number;
  createdAt: string;
  completedAt?: string | null;
  images?: OutputFile[];
  videos?: OutputFile[];
  clips?: OutputFile[];
  error?: { message: string; code?: string | null } | null;
}

export interface List<T> {
  data: T[];
  has_more?: boolean;
  last_id?: string | null;
  nextCursor?: string | null;
}

export interface UsageResult {
  model: string | null;
  api_key_id: string | null;
  kind: string | null;
  num_model_requests: number;
  input_tokens: number;
  input_cached_tokens: number;
  input_cache_write_tokens: number;
  input_cache_write_long_tokens: number;
  input_audio_tokens: number;
  input_image_tokens: number;
  output_tokens: number;
  reasoning_tokens: number;
  output_audio_tokens: number;
  output_image_tokens: number;
  tool_calls: number;
  seconds: number;
  images: number;
  characters: number;
  spentUsdMicros: number;
  spentCredits: number;
}

export interface UsageBucket {
  /** Seconds since 1970. */
  start_time: number;
  end_time: number;
  results: UsageResult[];
}

export interface UsagePage {
  data: UsageBucket[];
  has_more: boolean;
  next_page: string | null;
}

export interface RequestRecord extends PricedParts {
  id: string;
  requestId: string | null;
  createdAt: string;
  endedAt: string | null;
  kind: string;
  operation: string | null;
  model: string | null;
  keyId: string;
  status: string;
  streamed: boolean;
  tokens: { input: number; cachedInput: number; output: number; reasoning: number };
  images: number;
  seconds: number;
  characters: number;
  firstOutputMs: number | null;
  durationMs: number | null;
  costUsdMicros: number;
  creditsCharged: number;
  estimated: boolean;
  finishReason: string | null;
  error: RequestError | null;
}

/** Why a request failed. */
export interface RequestError {
  code: string;
  message: string;
}

export type Unit = "usd_micros" | "credits";

export interface BillingEntry {
  id: string;
  createdAt: string;
  kind: "grant" | "charge" | "refund";
  unit: Unit;
  amount: number;
  balanceAfter: number;
  keyId: string | null;
  model: string | null;
  requestKind: string | null;
  request: string | null;
  refundOf: string | null;
  takeBackOf: string | null;
}

export interface Hold {
  id: string;
  createdAt: string;
  unit: Unit;
  amount: number;
  kind: string;
  keyId: string;
  request: string;
}

export interface Webhook {
  id: string;
  /** For readers who may see other keys' webhooks. Null: not known. */
  keyId?: string | null;
  type: string;
  /** Null for alerts. */
  jobId: string | null;
  url: string;
  status: "pending" | "delivered" | "failed" | "stopped";
  attempts: number;
  lastStatus: number | null;
  lastError: string | null;
  createdAt: string;
  lastAttemptAt: string | null;
  nextAttemptAt: string | null;
}

export interface WebhookSecret {
  secret: string;
  createdAt: string;
  previousSecret: string | null;
  previousExpiresAt: string | null;
}

/** The record of one request, in OpenRouter's format. */
/** Parts of a request that may have prices of their own. */
export interface PricedParts {
  inputCacheWriteTokens: number;
  inputCacheWriteLongTokens: number;
  inputAudioTokens: number;
  inputImageTokens: number;
  outputAudioTokens: number;
  outputImageTokens: number;
  toolCalls: Record<string, number>;
  priceAboveInputTokens: number;
  servedTier: string | null;
}

export interface Generation extends PricedParts {
  id: string;
  created_at: string;
  model: string;
  kind: string;
  status: string;
  streamed: boolean;
  latency: number | null;
  generation_time: number | null;
  finish_reason: string | null;
  error: RequestError | null;
  native_tokens_prompt: number | null;
  native_tokens_completion: number | null;
  native_tokens_reasoning: number | null;
  native_tokens_cached: number | null;
  costUsdMicros: number;
  creditsCharged: number;
  requestId: string | null;
  keyId: string | null;
}
