import { stat } from 'node:fs/promises';
import { existsSync, readFileSync } from 'node:fs';
import type { Clock } from '@millrace/kit/clock';
import { messageOf, systemCode } from '@millrace/kit/errors';
import type { Log } from '@millrace/kit/log';
import { writePrivateFile } from '@millrace/kit/private-files';
import { runProgram } from '../../think/program.js';

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
  readonly #parts: OfferedFlagsParts;
  readonly #signal: AbortSignal;
  readonly #running = new Map<string, Promise<string>>();
  /** Programs that this daemon has already run, with or without an answer. */
  readonly #tried = new Set<string>();

  constructor(parts: OfferedFlagsParts) {
    this.#parts = parts;
    this.#signal = parts.signal ?? new AbortController().signal;
  }

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
    const { texts } = this.#parts;
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
          if (text !== '') this.#parts.texts.set(file, stamp, text);
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
      input: '',
      cwd: '/',
      environment,
      timeoutMs,
      signal: this.#signal,
      clock: this.#parts.clock,
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
