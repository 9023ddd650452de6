// The bounds of what is read of a ComfyUI server.

const mib = 1024 * 1024;

/** Bounds of a ComfyUI server's answers, each with its reason. */
export const comfyLimits = {
  /** Bytes of one task, with its graph. A failed node lists all its inputs. */
  taskBytes: 8 * mib,
  /** Bytes of the queue, with the graph of each task: hundreds of them. Reading more at once would take too long. */
  queueBytes: 8 * mib,
  /**
   * The tasks that ended last, some minutes' work of one machine. Among them a task is searched for that ended while its job had no
   * worker.
   */
  historyItems: 64,
} as const;
