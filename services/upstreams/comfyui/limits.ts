// The most bytes and tasks that are read of a ComfyUI server's queue and history. Times, and bounds of outputs, are those of all drivers
// (`../media/limits.ts`).

const mib = 1024 * 1024;

/** Bounds of one answer, each with its reason. */
export const comfyLimits = {
  /** Bytes of one task, with its graph. A failed node lists all its inputs. */
  taskBytes: 8 * mib,
  /** Bytes of the queue, with the graph of each task: hundreds of them. Reading more at once would take too long. */
  queueBytes: 8 * mib,
  /**
   * The tasks that ended last, some minutes' work of one machine. A task may end while its job has no worker. The next worker looks
   * for it among them.
   */
  historyItems: 64,
} as const;
