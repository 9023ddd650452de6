/** Called between the steps of a long task; throws `TaskCancelled` once the task is not wanted. */
export type Checkpoint = () => void;

/** Thrown inside a worker thread to leave a task whose caller has gone. */
export class TaskCancelled extends Error {
  override readonly name = "TaskCancelled";
}

/** A flag that a thread sees while it computes, when no message could reach it. */
export function createCancelFlag(): SharedArrayBuffer {
  return new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
}

/** Tells the thread that works under this flag to stop. */
export function raiseCancelFlag(flag: SharedArrayBuffer): void {
  Atomics.store(new Int32Array(flag), 0, 1);
}

/** The checkpoint that watches a flag. */
export function checkpointOf(flag: SharedArrayBuffer): Checkpoint {
  const cell = new Int32Array(flag);
  return () => {
    if (Atomics.load(cell, 0) !== 0) throw new TaskCancelled("the task was cancelled");
  };
}
