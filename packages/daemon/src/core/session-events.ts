import type { Entry, Exit, Facts, OutputFormat, Session, Sign } from './session.js';

/* Stages, events and effects of the state machine in session.ts. */

/** Where a session is in its life. `restarting`: it has ended, and its restart is planned. */
export type Stage = 'starting' | 'running' | 'stopping' | 'ended' | 'restarting';

/** First start, restart on request, or restart after a crash. */
export type StartKind = 'first' | 'again' | 'revived';

/** A session, and what was observed since the last tick. */
export interface SessionState extends Entry {
  readings?: Readings;
}

interface Readings {
  /** The agent's own reports: events in its output, or the protocol. */
  protocol?: Reading;
  transcript?: Reading;
  screen?: { sign?: Sign | undefined; isReady: boolean };
}

interface Reading {
  sign?: Sign | undefined;
  facts?: Facts | undefined;
}

/** An observation belongs to one start and one turn; a late one says nothing about the next. */
interface Observed {
  at: number;
  /** `starts` of the handle at the time of the observation. */
  run: number;
  /** `inputAt` of the handle, likewise. */
  turn: number;
}

/** Ways to write to an agent. */
export type InputKind = 'text' | 'choice' | 'permission' | 'interrupt';

export type SessionEvent =
  | { type: 'created'; at: number }
  | ({ type: 'prepared'; at: number } & RunFacts)
  | { type: 'spawned'; at: number; pid: number; startMark: string; isPrompted: boolean }
  | { type: 'not_started'; at: number; reason: string }
  | ({ type: 'protocol' } & Reading & Observed)
  | ({ type: 'transcript' } & Reading & Observed)
  | ({ type: 'screen'; sign?: Sign | undefined; isReady: boolean } & Observed)
  /** An inspection is complete: its readings decide the status. */
  | ({ type: 'tick'; staleness?: Sign | undefined } & Observed)
  | ({ type: 'ended'; exit: Omit<Exit, 'wasStopped'> } & Observed)
  /** The effect `settle` was carried out. */
  | { type: 'settled'; at: number }
  | { type: 'input'; at: number; kind: InputKind }
  /** The effect `write` was carried out. */
  | {
      type: 'written';
      at: number;
      inputAt: number;
      kind: 'text' | 'answer' | 'prompt';
      isTaken: boolean;
      keepsPrompt: boolean;
    }
  | { type: 'stop'; at: number }
  /** Its processes were ended on request, whatever the driver reports. */
  | { type: 'stopped'; at: number }
  | {
      type: 'restart';
      at: number;
      how: Exclude<StartKind, 'first'>;
      /** What it goes on with, instead of its prompt. */
      text?: string | undefined;
    }
  /** The delay of a planned restart is over. */
  | { type: 'due'; at: number }
  /** A new daemon looked for the process of an interrupted start. */
  | { type: 'adopt'; at: number; found?: { pid: number; startMark: string } | undefined }
  /** A new daemon has inspected all agents. */
  | { type: 'resume'; at: number }
  | { type: 'note'; at: number; facts: Partial<Session> }
  | { type: 'merged'; at: number; isMerged: boolean };

/** A prepared start, as recorded before the process exists. */
export interface RunFacts {
  /** The backend's own session. */
  own: string | null;
  format: OutputFormat;
  /** Its prompt has to be typed once it is ready. */
  isPromptPending: boolean;
  outputStart: number;
}

export type Effect =
  /** Writes the session or its handle to disk. */
  | { type: 'record' }
  /** Calls the listeners: the session has changed. */
  | { type: 'notify' }
  /** Prepares the run. */
  | { type: 'start'; how: StartKind }
  /** Starts the prepared process. */
  | { type: 'launch' }
  /** Writes to the agent; without a kind, its first prompt. */
  | { type: 'write'; kind?: InputKind; keepsPrompt: boolean }
  /** Ends the process and its descendants. */
  | { type: 'kill' }
  /** Releases what belongs to the ended process. */
  | { type: 'settle'; pid: number | null }
  /** Restarts it at that time. */
  | { type: 'schedule'; at: number }
  /** Requests the stop that an earlier daemon did not complete. */
  | { type: 'stop' }
  | { type: 'refuse'; reason: string };

export interface Step {
  entry: SessionState;
  effects: Effect[];
}
