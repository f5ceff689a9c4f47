import type { DaemonSchema } from '@millrace/contract/daemon';
import type { HostLaunch } from '../acp-host/state.js';

/** What is to be run. */
export interface Launch {
  id: string;
  /** The session's own directory, in which its output goes to `output.log`. */
  directory: string;
  token: string;
  file: string;
  args: readonly string[];
  /** What stands at stdin of a run with nobody at the keyboard. */
  input: string;
  cwd: string;
  environment: Readonly<Record<string, string | undefined>>;
  /** What the host of an agent over the Agent Client Protocol must know. */
  acp?:
    | Pick<HostLaunch, 'resume' | 'prompt' | 'resumePrompt' | 'model' | 'mode' | 'modeInstead'>
    | undefined;
  /** Called when the session's directory is there, before the process starts. */
  prepare?: () => void;
}

export type Started = { pid: number; startMark: string } | { failure: string };

/** What a driver sees of one agent. */
export interface ProcessView {
  /** Undefined: its process is gone, and what the driver knows of its end is in `exit`. */
  pid: number | undefined;
  exit: { code: number | null; signal: string | null } | undefined;
}

/** What a driver must know to find an agent again. */
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
  /** Looks at these agents, which may have been started by a daemon before. */
  inspect(agents: readonly KnownAgent[]): Promise<Map<string, ProcessView>>;
  /** Cancels the turn of an agent that is about to be ended. Resolves soon, even if it goes on. */
  cancelTurn?(id: string): Promise<void>;
  /** Lets go of what is left of an agent whose process has ended. */
  release(id: string): Promise<void>;
}

/** A driver whose agents can be talked to. */
export interface TalkingDriver extends Driver {
  /** What the agent's screen shows. */
  screen(id: string): Promise<string | undefined>;
  paste(id: string, text: string): Promise<void>;
  /** Types a short text key by key, as a person would. */
  type(id: string, text: string): Promise<void>;
  press(id: string, key: 'Enter' | 'Escape' | 'C-u' | 'Right'): Promise<void>;
  /** Every agent that it knows of, whoever started it. */
  agents(): Promise<string[]>;
}
