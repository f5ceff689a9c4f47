import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';

/**
 * What a process said before it was killed, a line each. A line that was written stays: kill -9
 * ends a process, not the system that holds its files.
 */
export class Ledger {
  #file;
  #next = 0;
  #onFirstAnswer;

  constructor(path, onFirstAnswer) {
    this.#file = openSync(path, 'a');
    this.#onFirstAnswer = onFirstAnswer;
  }

  /** Notes what is about to be asked of the database. */
  sent(kind, details) {
    const number = this.#next++;
    this.#write({ number, kind, ...details });
    return number;
  }

  /** Notes that the database has answered. */
  answered(number, answer) {
    this.#write({ number, answer });
    this.#onFirstAnswer?.();
    this.#onFirstAnswer = undefined;
  }

  close() {
    closeSync(this.#file);
  }

  #write(line) {
    writeSync(this.#file, `${JSON.stringify(line)}\n`);
  }
}

/** The entries in order, each with its answer if there was one. */
export function readLedger(path) {
  const entries = new Map();
  const lines = readFileSync(path, 'utf8').split('\n');
  // What follows the last line break was cut short by the kill.
  for (const text of lines.slice(0, -1)) {
    const line = JSON.parse(text);
    if ('kind' in line) entries.set(line.number, line);
    else entries.get(line.number).answer = line.answer;
  }
  return [...entries.values()];
}
