/** What became of an operator's action; undefined: nothing is known. */
export type ActionOutcome = "done" | "refused" | undefined;

/** A line of the operators' audit log: ids and figures alone. */
export interface OperatorAction {
  /** "act_" and 20 characters. */
  readonly actionId: string;
  /** Who acts. */
  readonly actor: string;
  /** "account.top_up" */
  readonly action: string;
  /** Of what account; "": of none. */
  readonly accountId: string;
  /** The key, job, hold or entry; "": none. */
  readonly target: string;
  /** A JSON object. */
  readonly details: string;
  readonly beganAtMs: number;
  readonly endedAtMs?: number;
  readonly outcome?: "done" | "refused";
  /** Why it was refused: the reason's code. */
  readonly reason?: string;
}

/** The end of an action. */
export interface ActionEnd {
  readonly actionId: string;
  readonly outcome: "done" | "refused";
  readonly reason: string;
  /** "": as it was. */
  readonly accountId: string;
  /** "": as it was. */
  readonly target: string;
  readonly endedAtMs: number;
}

/** Which actions; newest first. */
export interface ActionPage {
  /** "": all. */
  readonly accountId: string;
  readonly after?: { readonly beganAtMs: number; readonly actionId: string };
  readonly limit: number;
}

/**
 * The audit log. Lines are added, ended once, and never changed or removed otherwise. Each method is one write, durable
 * when its promise resolves, and safe to repeat. All refuse with SERVICE_UNAVAILABLE where the store is away.
 */
export interface ActionStore {
  /** Makes tables, collections and indexes. To be called once, before all else. */
  open(): Promise<void>;
  /** Adds a line; one that is there already stays as it is. */
  begin(action: OperatorAction): Promise<void>;
  /** Ends a line that has no end; one that has, or is not there, stays as it is. */
  end(end: ActionEnd): Promise<void>;
  /** Lines, newest first, by an index. */
  list(page: ActionPage): Promise<OperatorAction[]>;
}
