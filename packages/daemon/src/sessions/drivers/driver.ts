import type { DaemonSchema } from '@millrace/contract/daemon';
import type { HostLaunch } from '../../acp-host/state.js';

/** The program to run. */
export interface Launch {
  id: string;
  /** The session's directory; its output goes to `output.log` there. */
  directory: string;
  token: string;
  file: string;
  args: readonly string[];
  /** stdin of a headless run. */
  input: string;
  /** In a terminal, stdin is a file with the input. */
  isPiped?: boolean | undefined;
  cwd: string;
  environment: Readonly<Record<string, string | undefined>>;
  /** Launch parameters of an ACP host. */
  acp?:
    | Pick<HostLaunch, 'resume' | 'prompt' | 'resumePrompt' | 'model' | 'mode' | 'modeInstead'>
    | undefined;
  /** Called when the session's directory is there, before the process starts. */
  prepare?: () => void;
}

export type Started = { pid: number; startMark: string } | { failure: string };

/** A driver's view of one agent. */
export interface ProcessView {
  /** Undefined: the process has ended, and `exit` has what the driver knows about it. */
  pid: number | undefined;
  exit: { code: number | null; signal: string | null } | undefined;
}

/** What a driver needs to find an agent again. */
export interface KnownAgent {
  id: string;
  directory: string;
  token: string;
  pid: number | null;
  startMark: string | null;
}

/** A way to run agents, for all sessions that use it. */
export interface Driver {
  readonly name: DaemonSchema<'Driver'>;
  start(launch: Launch): Promise<Started>;
  /** Inspects these agents, which an earlier daemon may have started. */
  inspect(agents: readonly KnownAgent[]): Promise<Map<string, ProcessView>>;
  /**
   * Cancels the turn of an agent that is about to be ended. Resolves soon, even if the turn
   * continues.
   */
  cancelTurn?(id: string): Promise<void>;
  /** Releases the resources of an agent whose process has ended. */
  release(id: string): Promise<void>;
}

/** A driver whose agents can be talked to. */
export interface TalkingDriver extends Driver {
  /** The content of the agent's screen. */
  screen(id: string): Promise<string | undefined>;
  paste(id: string, text: string): Promise<void>;
  /** Types a short text key by key, as a person would. */
  type(id: string, text: string): Promise<void>;
  /** Presses a key, by the name that tmux has for it. */
  press(id: string, key: string): Promise<void>;
  /** All its agents, including those of earlier daemons. */
  agents(): Promise<string[]>;
}
