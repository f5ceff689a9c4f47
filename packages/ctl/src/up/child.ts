import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { membersIn, Refusal } from '@millrace/kit/errors';
import { programName } from '../base/command-name.js';
import type { Listener } from './parts.js';

/** How to start a server: the words after `ctl`, and its environment. */
export interface Command {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: string | null;
  /** Its last message. */
  readonly lastWords: string;
}

/** A server process. */
export interface Child {
  readonly pid: number | undefined;
  /** Resolves when every listener is announced; rejects if the process exits before that. */
  readonly ready: Promise<readonly Listener[]>;
  readonly ended: Promise<Exit>;
  kill(signal: NodeJS.Signals): void;
}

export interface ChildOptions {
  /** Listeners it announces when it is ready. */
  readonly listeners: readonly string[];
  /** Called with every line it logs. */
  readonly onLog: (line: string) => void;
  /** Rewrites its advice for users of `ctl up`. */
  readonly reword?: (line: string) => string;
}

/** Starts another `ctl` of the same build. */
export function startCtl(command: Command, options: ChildOptions): Child {
  const script = process.argv[1];
  if (script === undefined) throw new Error('ctl does not know its own path');
  return startChild([...process.execArgv, script, ...command.args], command.env, options);
}

/**
 * The process has its own process group, so that Ctrl-C reaches it only through us, in our order.
 * The IPC channel shows it when we are gone: the system closes it even if we are killed.
 */
export function startChild(
  args: readonly string[],
  env: Command['env'],
  { listeners, onLog, reword = (line) => line }: ChildOptions,
): Child {
  const child = spawn(process.execPath, args, {
    env,
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    detached: true,
  });
  let lastWords = '';
  const logs = createInterface({ input: child.stderr! });
  logs.on('line', (said) => {
    const line = reword(said);
    lastWords = wordsOf(line) ?? lastWords;
    onLog(line);
  });
  const ended = new Promise<Exit>((resolve) => {
    let failure: string | undefined;
    child.on('error', (error) => (failure = error.message));
    // Unlike `exit`, `close` comes after all output was read.
    child.on('close', (code, signal) => {
      resolve({ code, signal, lastWords: failure ?? lastWords });
    });
  });
  const announced = new Map<string, Listener>();
  const ready = new Promise<readonly Listener[]>((resolve, reject) => {
    createInterface({ input: child.stdout! }).on('line', (line) => {
      const found = listenerOf(line);
      if (found) announced.set(found.listener, found);
      else onLog(line);
      if (listeners.every((name) => announced.has(name))) resolve([...announced.values()]);
    });
    void ended.then((exit) => reject(new Refusal('PART_FAILED', exitText(exit))));
  });
  // A caller that waits only for the exit does not need the rejection.
  ready.catch(() => undefined);
  return {
    pid: child.pid,
    ready,
    ended,
    kill: (signal) => void child.kill(signal),
  };
}

/** `exit code 1: the port is taken` */
export function exitText({ code, signal, lastWords }: Exit): string {
  const how = signal === null ? `exit code ${code}` : signal;
  return lastWords === '' ? how : `${lastWords} (${how})`;
}

function listenerOf(line: string): Listener | undefined {
  const { event, listener, url } = jsonOf(line);
  if (event !== 'listening' || typeof listener !== 'string' || typeof url !== 'string') {
    return undefined;
  }
  return { listener, url };
}

/** The message in a line: an error of ctl, or a log line of level warn or above. */
function wordsOf(line: string): string | undefined {
  const { level, msg, err } = jsonOf(line);
  if (typeof msg !== 'string') {
    const [words, prefix] = [line.trim(), `${programName()}: `];
    return (words.startsWith(prefix) ? words.slice(prefix.length) : words) || undefined;
  }
  if (level !== 'error' && level !== 'fatal') return undefined;
  const { message } = (err ?? {}) as { message?: unknown };
  return typeof message === 'string' ? `${msg}: ${message}` : msg;
}

export function jsonOf(line: string): Readonly<Record<string, unknown>> {
  return (line.startsWith('{') && membersIn(line)) || {};
}
