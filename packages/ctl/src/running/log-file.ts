import { appendFileSync, mkdirSync, renameSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Log lines of the servers of `ctl up`, as JSON with the field `component`. */
export const logFile = (dataDir: string) => join(dataDir, 'logs', 'millrace.log');
/** The log file before the last rotation. */
export const olderLogFile = (dataDir: string) => `${logFile(dataDir)}.1`;

const maxBytes = 16 * 2 ** 20;

/** Appends lines to the log file and rotates it: at most two files of `limit` bytes. */
export class LogFile {
  readonly #file: string;
  #bytes: number;

  constructor(
    private readonly dataDir: string,
    private readonly limit = maxBytes,
  ) {
    this.#file = logFile(dataDir);
    mkdirSync(dirname(this.#file), { recursive: true, mode: 0o700 });
    this.#bytes = statSync(this.#file, { throwIfNoEntry: false })?.size ?? 0;
  }

  append(component: string, line: string): void {
    const text = `${line.startsWith('{') ? line : JSON.stringify({ component, msg: line })}\n`;
    if (this.#bytes > 0 && this.#bytes + text.length > this.limit) {
      renameSync(this.#file, olderLogFile(this.dataDir));
      this.#bytes = 0;
    }
    appendFileSync(this.#file, text, { mode: 0o600 });
    this.#bytes += Buffer.byteLength(text);
  }
}
