import { spawn, type ChildProcess } from 'node:child_process';
import type { Clock, Timer } from '@millrace/kit/clock';
import { messageOf, systemCode } from '@millrace/kit/errors';

export interface ProgramRun {
  file: string;
  args: readonly string[];
  /** Written to stdin, which is then closed. */
  input: string;
  cwd: string;
  environment: Readonly<Record<string, string | undefined>>;
  timeoutMs: number;
  /** Which part of a too large output to return; default: the end. */
  keeps?: 'start' | 'end';
  /** Maximum size of the output; default 4 MiB. */
  maxBytes?: number;
  /** Ends the run early. */
  signal: AbortSignal;
  clock: Clock;
}

export type ProgramEnd =
  | { kind: 'exited'; code: number | null; signal: string | null; stdout: string; stderr: string }
  | { kind: 'timeout'; stdout: string; stderr: string }
  | { kind: 'too_long'; stdout: string; stderr: string }
  | { kind: 'aborted' }
  | { kind: 'not_started'; reason: string };

/** Maximum size of an answer. */
export const maxOutputBytes = 4_194_304;
const maxErrorBytes = 65_536;
const graceMs = 2_000;
/** Time to read the rest of the pipe after the program exited. */
const pipeMs = 200;

/**
 * Runs a program in its own process group, so that its children end with it. Failures are returned,
 * not thrown. On timeout and abort the group gets SIGTERM, then SIGKILL.
 */
export function runProgram(run: ProgramRun): Promise<ProgramEnd> {
  return new Promise((resolve) => new RunningProgram(run, resolve).start());
}

class RunningProgram {
  readonly #stdout: BoundedOutput;
  readonly #stderr = new BoundedOutput(maxErrorBytes);
  readonly #timers: Timer[] = [];
  #child: ChildProcess | undefined;
  #verdict: 'timeout' | 'too_long' | 'aborted' | undefined;
  #isDone = false;
  readonly #onAbort = () => this.#end('aborted');

  constructor(
    private readonly run: ProgramRun,
    private readonly resolve: (end: ProgramEnd) => void,
  ) {
    this.#stdout = new BoundedOutput(run.maxBytes ?? maxOutputBytes, run.keeps);
  }

  start(): void {
    const { file, args, cwd, environment, signal, timeoutMs, input, clock } = this.run;
    if (signal.aborted) return this.#settle({ kind: 'aborted' });
    let child: ChildProcess;
    try {
      child = spawn(file, args, { cwd, env: { ...environment }, detached: true, stdio: 'pipe' });
    } catch (error) {
      return this.#settle({ kind: 'not_started', reason: startFailure(error) });
    }
    this.#child = child;
    child.on('error', (error) => {
      // Without a pid there will be no exit event.
      if (child.pid === undefined) {
        this.#settle({ kind: 'not_started', reason: startFailure(error) });
      }
    });
    child.stdout!.on('data', (bytes: Buffer) => {
      this.#stdout.add(bytes);
      if (this.#stdout.isFull) this.#end('too_long');
    });
    child.stderr!.on('data', (bytes: Buffer) => this.#stderr.add(bytes));
    child.on('close', (code, exitSignal) => this.#exited(code, exitSignal));
    child.on('exit', (code, exitSignal) => {
      // A child that outlives the program may hold the pipes open indefinitely.
      this.#after(pipeMs, () => this.#exited(code, exitSignal));
    });
    // EPIPE: the program may exit without reading all of its input.
    child.stdin!.on('error', () => undefined);
    child.stdin!.end(input);
    signal.addEventListener('abort', this.#onAbort, { once: true });
    this.#timers.push(clock.after(timeoutMs, () => this.#end('timeout')));
  }

  #after(delayMs: number, run: () => void): void {
    this.#timers.push(this.run.clock.after(delayMs, run));
  }

  #end(verdict: 'timeout' | 'too_long' | 'aborted'): void {
    if (this.#isDone || this.#verdict) return;
    this.#verdict = verdict;
    this.#kill('SIGTERM');
    this.#after(graceMs, () => this.#kill('SIGKILL'));
  }

  #exited(code: number | null, signal: string | null): void {
    if (this.#isDone) return;
    this.#kill('SIGKILL');
    const [stdout, stderr] = [this.#stdout.text, this.#stderr.text];
    if (this.#verdict === 'aborted') this.#settle({ kind: 'aborted' });
    else if (this.#verdict) this.#settle({ kind: this.#verdict, stdout, stderr });
    else this.#settle({ kind: 'exited', code, signal, stdout, stderr });
  }

  #settle(end: ProgramEnd): void {
    if (this.#isDone) return;
    this.#isDone = true;
    for (const timer of this.#timers) timer.cancel();
    this.run.signal.removeEventListener('abort', this.#onAbort);
    this.#child?.stdout?.destroy();
    this.#child?.stderr?.destroy();
    this.resolve(end);
  }

  /** Signals the whole process group. */
  #kill(signal: 'SIGTERM' | 'SIGKILL'): void {
    const pid = this.#child?.pid;
    if (pid === undefined) return;
    try {
      process.kill(-pid, signal);
    } catch (error) {
      // The group has already ended.
      if (!['ESRCH', 'EPERM'].includes(systemCode(error))) throw error;
    }
  }
}

function startFailure(error: unknown): string {
  switch (systemCode(error)) {
    case 'ENOENT':
      return 'the program is gone; run `ctl backend rescan`';
    case 'EACCES':
      return 'the program may not be run by this user';
    case 'E2BIG':
      return 'the prompt is too long for an argument';
    default:
      return `the program could not be started: ${messageOf(error)}`;
  }
}

/** The last bytes of an output, or the first ones, up to a limit. */
class BoundedOutput {
  #chunks: Buffer[] = [];
  #length = 0;
  #total = 0;

  constructor(
    private readonly limit: number,
    private readonly keeps: 'start' | 'end' = 'end',
  ) {}

  get isFull(): boolean {
    return this.#total > this.limit;
  }

  get text(): string {
    const bytes = Buffer.concat(this.#chunks, this.#length);
    if (this.keeps === 'start') return bytes.subarray(0, this.limit).toString('utf8');
    return bytes.subarray(Math.max(0, bytes.length - this.limit)).toString('utf8');
  }

  add(bytes: Buffer): void {
    this.#total += bytes.length;
    if (this.keeps === 'start' && this.#length > this.limit) return;
    this.#chunks.push(bytes);
    this.#length += bytes.length;
    while (this.keeps === 'end' && this.#length - this.#chunks[0]!.length >= this.limit) {
      this.#length -= this.#chunks.shift()!.length;
    }
  }
}
