/** How new traces are chosen; those that came from elsewhere are as their beginning was, where `isParentBased`. */
export interface SamplerConfig {
  /** Of all new traces, 0 to 1. */
  ratio: number;
  isParentBased: boolean;
}

/** Where one kind of data goes. */
export interface ExportConfig {
  /** OTLP over HTTP, with its path. */
  url: string;
  /** May hold secrets. */
  headers: Readonly<Record<string, string>>;
  /** Milliseconds for one export, its repeats included. */
  timeoutMs: number;
  /** Milliseconds between two exports. */
  intervalMs: number;
}

/** What goes out, and where to. Undefined: that kind does not. */
export interface TelemetryConfig {
  traces: (ExportConfig & { sampler: SamplerConfig }) | undefined;
  metrics: ExportConfig | undefined;
  /** `service.name` and whatever else tells this process from others. */
  resource: Readonly<Record<string, string>>;
}
