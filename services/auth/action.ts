// Says what a line of the operators' audit log is, and what its store must promise. `action-store-documents.ts` keeps the lines.

/** The result of an operator's action. Undefined where nothing is known. */
export type ActionOutcome = "done" | "refused" | undefined;

/** A line of the operators' audit log. It holds only ids and figures. */
export interface OperatorAction {
  /** "act_" and 20 characters. */
  readonly actionId: string;
  /** The operator or process that acts. */
  readonly actor: string;
  /** For example "account.top_up". */
  readonly action: string;
  /** The account that the action changes, or "". */
  readonly accountId: string;
  /** The key, job, hold or entry, or "". */
  readonly target: string;
  /** A JSON object. */
  readonly details: string;
  readonly beganAtMs: number;
  readonly endedAtMs?: number;
  readonly outcome?: "done" | "refused";
  /** The code of the refusal's reason. */
  readonly reason?: string;
}

/** The end of an action. */
export interface ActionEnd {
  readonly actionId: string;
  readonly outcome: "done" | "refused";
  readonly reason: string;
  /** "" leaves the field unchanged. */
  readonly accountId: string;
  /** "" leaves the field unchanged. */
  readonly target: string;
  readonly endedAtMs: number;
}

/** A page of actions, newest first. */
export interface ActionPage {
  /** "" for those of all accounts. */
  readonly accountId: string;
  readonly after?: { readonly beganAtMs: number; readonly actionId: string };
  readonly limit: number;
}

/**
 * The audit log. Lines are added and ended once. There is no other change. Each method is one write, durable when its promise resolves, and
 * safe to repeat. All refuse with SERVICE_UNAVAILABLE where the store is away.
 */
export interface ActionStore {
  /** Makes tables, collections and indexes. It is called once, before all other methods. */
  open(): Promise<void>;
  /** Adds a line. A line that exists already stays unchanged. */
  begin(action: OperatorAction): Promise<void>;
  /** Ends a line that has no end. A line with an end stays unchanged. A missing line is not added. */
  end(end: ActionEnd): Promise<void>;
  /** Lines, newest first, by an index. */
  list(page: ActionPage): Promise<OperatorAction[]>;
}
