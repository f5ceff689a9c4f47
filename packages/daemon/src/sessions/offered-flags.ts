import { stat } from 'node:fs/promises';
import type { Clock } from '@millrace/kit/clock';
import { runProgram } from '../think/program.js';

/** A spawn waits for it; without the answer no optional flag is used. */
const timeoutMs = 20_000;

/** Which flags the `--help` of an installed program lists; each program is asked once. */
export class OfferedFlags {
  readonly #helpTexts = new Map<string, Promise<string>>();

  constructor(
    private readonly clock: Clock,
    /** Aborted when the daemon stops. */
    private readonly signal: AbortSignal = new AbortController().signal,
  ) {}

  async among(
    file: string,
    flags: readonly string[],
    environment: Readonly<Record<string, string | undefined>>,
  ): Promise<ReadonlySet<string>> {
    if (flags.length === 0) return new Set();
    const text = await this.#textOf(file, environment);
    return new Set(flags.filter((flag) => lists(text, flag)));
  }

  /** Whether the program answers `--help` at all. */
  async answers(
    file: string,
    environment: Readonly<Record<string, string | undefined>>,
  ): Promise<boolean> {
    return (await this.#textOf(file, environment)).trim() !== '';
  }

  async #textOf(
    file: string,
    environment: Readonly<Record<string, string | undefined>>,
  ): Promise<string> {
    const { mtimeMs, size } = await stat(file);
    // An update replaces the file, and may bring other flags.
    const key = `${file}\n${mtimeMs}\n${size}`;
    let help = this.#helpTexts.get(key);
    if (!help) this.#helpTexts.set(key, (help = this.#help(file, environment)));
    const text = await help;
    if (text === '') this.#helpTexts.delete(key);
    return text;
  }

  /** Empty when the program does not answer: then none of the flags is used. */
  async #help(
    file: string,
    environment: Readonly<Record<string, string | undefined>>,
  ): Promise<string> {
    const end = await runProgram({
      file,
      args: ['--help'],
      input: '',
      cwd: '/',
      environment,
      timeoutMs,
      signal: this.signal,
      clock: this.clock,
    });
    return end.kind === 'exited' ? `${end.stdout}\n${end.stderr}` : '';
  }
}

function lists(help: string, flag: string): boolean {
  return new RegExp(`(?:^|[\\s,])${flag}(?![\\w-])`, 'm').test(help);
}
