import { spawn, type ChildProcess } from 'node:child_process';
import { stat } from 'node:fs/promises';
import { existsSync, readFileSync } from 'node:fs';
import type { Clock, Timer } from '@millrace/kit/clock';
import { messageOf, systemCode } from '@millrace/kit/errors';
import type { Log } from '@millrace/kit/log';
import { writePrivateFile } from '@millrace/kit/private-files';

export interface ProgramRun {
  file: string;
  args: readonly string[];
  /** Written to stdin, which is then closed. */
  input?: string | undefined;
  cwd: string;
  environment: Readonly<Record<string, string | undefined>>;
  timeoutMs: number;
  /** Which part of a too large output to return; default: the end. */
  keeps?: 'start' | 'end' | undefined;
  /** Maximum size of the output; default 4 MiB. */
  maxBytes?: number | undefined;
  /** Ends the run early. */
  signal?: AbortSignal | undefined;
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
    const { file, args, cwd, environment, signal, timeoutMs, input = '', clock } = this.run;
    if (signal?.aborted) return this.#settle({ kind: 'aborted' });
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
      // On a busy machine the timer is due before the pipes were read once more.
      this.#after(pipeMs, () => setImmediate(() => this.#exited(code, exitSignal)));
    });
    // EPIPE: the program may exit without reading all of its input.
    child.stdin!.on('error', () => undefined);
    child.stdin!.end(input);
    signal?.addEventListener('abort', this.#onAbort, { once: true });
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
    this.run.signal?.removeEventListener('abort', this.#onAbort);
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

/** The first spawn of an unknown program waits for it; later ones never do. */
const timeoutMs = 60_000;

type Environment = Readonly<Record<string, string | undefined>>;

export interface OfferedFlagsParts {
  clock: Clock;
  texts: HelpTexts;
  /** Aborted when the daemon stops. */
  signal?: AbortSignal;
}

/**
 * Which flags the `--help` of an installed program lists. The text is stored, so that only the
 * first use of a program waits for it. Each daemon reads it once more in the background, because
 * a wrapper script does not change when the program behind it is updated.
 */
export class OfferedFlags {
  readonly #running = new Map<string, Promise<string>>();
  /** Programs that this daemon has already run, with or without an answer. */
  readonly #tried = new Set<string>();

  constructor(private readonly parts: OfferedFlagsParts) {}

  async among(
    file: string,
    flags: readonly string[],
    environment: Environment,
  ): Promise<ReadonlySet<string>> {
    if (flags.length === 0) return new Set();
    const text = await this.#textOf(file, environment);
    return new Set(flags.filter((flag) => lists(text, flag)));
  }

  /** Whether the program answers `--help` at all. */
  async answers(file: string, environment: Environment): Promise<boolean> {
    return (await this.#textOf(file, environment)).trim() !== '';
  }

  /** Resolves when no program runs in the background. */
  async settled(): Promise<void> {
    await Promise.all(this.#running.values());
  }

  async #textOf(file: string, environment: Environment): Promise<string> {
    const { texts } = this.parts;
    const { mtimeMs, size } = await stat(file);
    // An update replaces the file, and may bring other flags.
    const stamp = { mtimeMs, size };
    const key = `${file}\n${mtimeMs}\n${size}`;
    const known = texts.get(file, stamp);
    if (known !== undefined) {
      if (!this.#tried.has(key)) void this.#run(key, file, stamp, environment);
      return known;
    }
    const isSilent = this.#tried.has(key) && !this.#running.has(key);
    const run = this.#run(key, file, stamp, environment);
    const text = isSilent ? '' : await run;
    return text === '' ? (texts.latest(file) ?? '') : text;
  }

  #run(key: string, file: string, stamp: ProgramStamp, environment: Environment): Promise<string> {
    this.#tried.add(key);
    let run = this.#running.get(key);
    if (!run) {
      run = this.#help(file, environment)
        .then((text) => {
          if (text !== '') this.parts.texts.set(file, stamp, text);
          return text;
        })
        .finally(() => this.#running.delete(key));
      this.#running.set(key, run);
    }
    return run;
  }

  /** Empty when the program does not answer: then none of the flags is used. */
  async #help(file: string, environment: Environment): Promise<string> {
    const end = await runProgram({
      file,
      args: ['--help'],
      cwd: '/',
      environment,
      timeoutMs,
      signal: this.parts.signal,
      clock: this.parts.clock,
    });
    return end.kind === 'exited' && end.signal === null ? `${end.stdout}\n${end.stderr}` : '';
  }
}

function lists(help: string, flag: string): boolean {
  return new RegExp(`(?:^|[\\s,])${flag}(?![\\w-])`, 'm').test(help);
}

/** Changes when a program is replaced. */
export interface ProgramStamp {
  mtimeMs: number;
  size: number;
}

interface Entry extends ProgramStamp {
  text: string;
}

const maxLength = 262_144;

/** The `--help` of programs by path, in a file that survives the daemon. */
export class HelpTexts {
  readonly #entries: Map<string, Entry>;

  /** Without a file they live as long as this object. */
  constructor(private readonly stored?: { file: string; log: Log }) {
    this.#entries = new Map(stored ? read(stored) : []);
  }

  /** The text of the program with this stamp. */
  get(path: string, { mtimeMs, size }: ProgramStamp): string | undefined {
    const entry = this.#entries.get(path);
    return entry?.mtimeMs === mtimeMs && entry.size === size ? entry.text : undefined;
  }

  /** The text of the program or of the one that was there before it. */
  latest(path: string): string | undefined {
    return this.#entries.get(path)?.text;
  }

  set(path: string, stamp: ProgramStamp, text: string): void {
    const before = this.get(path, stamp);
    const entry = { ...stamp, text: text.slice(0, maxLength) };
    this.#entries.set(path, entry);
    if (before !== entry.text) this.#save();
  }

  #save(): void {
    if (!this.stored) return;
    const { file, log } = this.stored;
    // An empty text may be a failed run; an uninstalled program needs no entry.
    const lasting = [...this.#entries].filter(
      ([path, { text }]) => text.trim() !== '' && existsSync(path),
    );
    try {
      writePrivateFile(file, JSON.stringify(Object.fromEntries(lasting)));
    } catch (error) {
      log.warn({ err: error, file }, 'failed to save program help');
    }
  }
}

function read({ file, log }: { file: string; log: Log }): [string, Entry][] {
  try {
    const value: unknown = JSON.parse(readFileSync(file, 'utf8'));
    return Object.entries(value ?? {}).filter((each): each is [string, Entry] => isEntry(each[1]));
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') {
      log.warn({ file, reason: messageOf(error) }, 'failed to read program help');
    }
    return [];
  }
}

function isEntry(value: unknown): value is Entry {
  const { mtimeMs, size, text } = (value ?? {}) as Partial<Entry>;
  return typeof mtimeMs === 'number' && typeof size === 'number' && typeof text === 'string';
}
