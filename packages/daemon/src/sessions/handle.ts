import type { OutputFormat } from './command-lines.js';
import type { Session } from './port.js';

/** What the daemon keeps of a session for itself, beside what everybody sees. */
export interface Handle {
  /** In the arguments of the agent's wrapper: proves that a process is ours. */
  token: string;
  /** Start time of the process `pid`; detects a reused process id. */
  startMark: string | null;
  /** How many times it was started. */
  starts: number;
  startedAt: number;
  /** When it was last given something to do. */
  inputAt: number;
  /** The turn, by the time of its input, whose limit has been told. */
  limitTurn: number | null;
  /** Its first prompt still has to be pasted. */
  isPromptPending: boolean;
  /** The request named the directory to work in; sessions of older versions do not say. */
  isWorkspaceNamed?: boolean;
  /** Somebody asked for its end. */
  isStopping: boolean;
  /** The row of the tables that describes its command line. */
  cli: string;
  format: OutputFormat;
  /** The requested model, as named in the request. */
  model: string | null;
  /** The requested mode of an agent over ACP. */
  mode?: string;
  /** Restarts that nobody asked for, in a row. */
  autoRestarts: number;
  /** When it is to be started again. */
  restartAt: number | null;
  /** Where in its output that of the last start begins. */
  outputStart: number;
  worktree: WorktreeOrigin | null;
}

/** How a worktree was made, as needed to remove it. */
export interface WorktreeOrigin {
  /** The repository that it belongs to. */
  root: string;
  branch: string;
  /** The commit that it began at. */
  base: string;
  /** The branch that was checked out where it was made from. */
  baseBranch: string | null;
  /** The branch was made for it. */
  madeBranch: boolean;
}

/** A session with its handle. */
export interface Entry {
  session: Session;
  handle: Handle;
}
