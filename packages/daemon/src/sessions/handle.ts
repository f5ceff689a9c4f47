import type { OutputFormat } from './command-lines.js';
import type { Session } from './port.js';

/** Internal state of a session, beside what the API shows. */
export interface Handle {
  /** An argument of the agent's wrapper script: proves that a process is ours. */
  token: string;
  /** Start time of the process `pid`; detects a reused process id. */
  startMark: string | null;
  /** How many times it was started. */
  starts: number;
  startedAt: number;
  /** Time of the last input. */
  inputAt: number;
  /** The turn, by the time of its input, whose limit was already reported. */
  limitTurn: number | null;
  /** Its first prompt still has to be pasted. */
  isPromptPending: boolean;
  /** The request named the directory to work in; sessions of older versions do not say. */
  isWorkspaceNamed?: boolean;
  /** A stop was requested. */
  isStopping: boolean;
  /** The row of the tables that describes its command line. */
  cli: string;
  format: OutputFormat;
  /** The requested model, as named in the request. */
  model: string | null;
  /** The requested mode of an agent over ACP. */
  mode?: string;
  /** Consecutive automatic restarts. */
  autoRestarts: number;
  /** When it is to be started again. */
  restartAt: number | null;
  /** Offset in the output where the last start begins. */
  outputStart: number;
  worktree: WorktreeOrigin | null;
}

/** How a worktree was made, as needed to remove it. */
export interface WorktreeOrigin {
  /** The repository that it belongs to. */
  root: string;
  branch: string;
  /** The commit that it started at. */
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
