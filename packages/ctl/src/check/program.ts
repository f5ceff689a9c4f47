import { spawn, type ChildProcess, type StdioOptions } from 'node:child_process';
import { constants } from 'node:os';
import { messageOf, systemCode } from '@millrace/kit/errors';

export interface Ending {
  /** Exit code as in shells: 128 plus the number of the signal that killed the command. */
  readonly exitCode: number;
  readonly signal: NodeJS.Signals | null;
}

/** The command could not be started. */
export class NotStarted extends Error {
  override readonly name = 'NotStarted';

  constructor(
    message: string,
    readonly code: string,
    /** As in shells: 127 for a missing program, 126 for one that is not executable. */
    readonly exitCode: 126 | 127,
  ) {
    super(message);
  }
}

export interface Program {
  readonly command: readonly string[];
  readonly stdio: StdioOptions;
  readonly env?: NodeJS.ProcessEnv | undefined;
  /** Ctrl-C reaches the command directly, since it shares our terminal. */
  readonly isOnTerminal: boolean;
}

/** Runs a command to its end; it inherits stdin and gets the signals that we get. */
export function runProgram({ command, stdio, env, isOnTerminal }: Program): Promise<Ending> {
  const [file = '', ...args] = command;
  return new Promise((resolve, reject) => {
    let child: ChildProcess | undefined;
    // Before the start: a signal in between would end us and leave the command running.
    const release = takeSignals(isOnTerminal, (name) => child?.kill(name));
    try {
      child = spawn(file, args, { stdio, ...(env && { env }) });
    } catch (error) {
      release();
      return reject(notStarted(file, error));
    }
    const { pid } = child;
    child.on('error', (error) => {
      if (pid !== undefined) return;
      release();
      reject(notStarted(file, error));
    });
    child.on('exit', (code, signal) => {
      release();
      const ofSignal = signal === null ? 1 : 128 + constants.signals[signal];
      resolve({ exitCode: code ?? ofSignal, signal });
    });
  });
}

const passedOn = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const;
const fromKeyboard: ReadonlySet<string> = new Set(['SIGINT', 'SIGQUIT']);

/** Until released, signals do not end us: the command handles them, and we end when it does. */
function takeSignals(
  isOnTerminal: boolean,
  passOn: (name: (typeof passedOn)[number]) => void,
): () => void {
  const releases = passedOn.map((name) => {
    const before = process.listeners(name);
    const listener = (): void => {
      // A second Ctrl-C means "at once" to many programs, so do not deliver one twice.
      if (!isOnTerminal || !fromKeyboard.has(name)) passOn(name);
    };
    process.on(name, listener);
    for (const each of before) process.off(name, each);
    return () => {
      for (const each of before) process.on(name, each);
      process.off(name, listener);
    };
  });
  return () => {
    for (const release of releases) release();
  };
}

function notStarted(file: string, error: unknown): NotStarted {
  const code = systemCode(error);
  if (code === 'ENOENT') return new NotStarted(`there is no program "${file}"`, code, 127);
  if (code === 'EACCES') return new NotStarted(`"${file}" is not executable`, code, 126);
  return new NotStarted(`"${file}" could not be started: ${messageOf(error)}`, code, 126);
}
