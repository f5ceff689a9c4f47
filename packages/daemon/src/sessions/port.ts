import type { DaemonSchema } from '@millrace/contract/daemon';
import type { StoredQuestion } from '../questions/question.js';

export type Session = DaemonSchema<'Session'>;
export type SpawnRequest = DaemonSchema<'SpawnRequest'>;

/** The caller of a spawn request. */
export interface SpawnOrigin {
  /** A repeat with the same key and the same request answers the session that is there. */
  idempotencyKey?: string;
  pipeline?: { id: string; jobId: string };
  /** The queue task that the session works on. */
  task?: DaemonSchema<'SessionTask'>;
  /** The plan and the task that the session works for. */
  plan?: { id: string; key: string };
  /** The agent that asks for it, with its own token. */
  agent?: string | undefined;
}

/** A session as it was and as it is; without `after` it was removed. */
export interface SessionChange {
  before: Session | undefined;
  after: Session | undefined;
}

/**
 * The sessions, for the rest of the daemon. Every method but `find` refuses an unknown id with
 * SESSION_NOT_FOUND; returned states are on disk.
 */
export interface Sessions {
  /** Passes the gates, then starts: the budget gate refuses with its verdict unless `force`. */
  spawn(
    request: SpawnRequest,
    origin?: SpawnOrigin,
  ): Promise<{ session: Session; isReplay: boolean }>;
  /** The secret of a live session, which its own token is made from. */
  secretOf(id: string): string | undefined;
  /** Newest first. */
  list(): Promise<Session[]>;
  find(id: string): Promise<Session | undefined>;
  output(
    id: string,
    from: { after?: number; limit: number },
  ): Promise<DaemonSchema<'SessionOutput'>>;
  /** What its terminal shows, with SGR sequences; SESSION_STATE where there is none. */
  screen(id: string): Promise<DaemonSchema<'SessionScreen'>>;
  /** The agent's last answer, from its own transcript; undefined when it is unknown. */
  lastAnswer(id: string): Promise<string | undefined>;
  /** Pastes the text and presses Enter; refuses with SESSION_STATE when the turn did not start. */
  send(id: string, text: string): Promise<Session>;
  /**
   * Delivers the answer to the agent; `gone` when it no longer waits for one. Refuses with
   * SESSION_STATE when the agent does not accept it.
   */
  answer(question: StoredQuestion, answer: string): Promise<'taken' | 'gone'>;
  /** Presses Escape. Whether the turn ended shows in the status. */
  interrupt(id: string): Promise<void>;
  stop(id: string): Promise<Session>;
  /** Starts the server of its worktree, or returns the one that runs. */
  serve(id: string): Promise<DaemonSchema<'SessionServer'>>;
  /** With a text, the agent goes on with that instead of its prompt. */
  restart(id: string, text?: string): Promise<Session>;
  remove(id: string): Promise<DaemonSchema<'SessionDeletion'>>;
  setForceCompact(id: string, state: DaemonSchema<'ForceCompactChoice'>): Promise<Session>;
  /** Records that its branch was merged here, or has commits again that were not. */
  setMerged(id: string, isMerged: boolean): Promise<void>;
  /** Called after each change is on disk, in order. Returns a function to unsubscribe. */
  onChange(listener: (change: SessionChange) => void): () => void;
}
