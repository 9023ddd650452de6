/**
 * Why a rendering came to nothing: `failed` (the work itself), `timeout` (took too long), `busy` (too
 * many wait), `closed` (the renderer is being disposed of).
 */
export type RenderFailure = "failed" | "timeout" | "busy" | "closed";

/** Thrown by the renderer. The message never holds a prompt, a text or a file's name. */
export class RenderError extends Error {
  override readonly name = "RenderError";
  readonly failure: RenderFailure;

  constructor(failure: RenderFailure, message: string) {
    super(message);
    this.failure = failure;
  }
}
