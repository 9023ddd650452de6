const mib = 1024 * 1024;

/** Bounds of what a ComfyUI server answers, each with its reason. */
export const comfyLimits = {
  /** One task, with its graph; a node that failed tells all that it was given. */
  taskBytes: 8 * mib,
  /** The queue, with the graph of each task in it: hundreds of them. More would be read for too long at once. */
  queueBytes: 8 * mib,
  /** Tasks that ended last, among which one is looked for that ended while its job had no worker: some minutes' work of one machine. */
  historyItems: 64,
} as const;
