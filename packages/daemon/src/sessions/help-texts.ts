import { existsSync, readFileSync } from 'node:fs';
import { messageOf, systemCode } from '@millrace/kit/errors';
import type { Log } from '@millrace/kit/log';
import { writePrivateFile } from '@millrace/kit/private-files';

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
