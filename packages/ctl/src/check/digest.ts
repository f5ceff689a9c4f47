import { stripVTControlCharacters } from 'node:util';
import type { Rules } from './rules.js';

export interface Digest {
  readonly lines: number;
  /** The lines shown, with a note wherever lines are omitted. */
  readonly text: string;
  readonly left: number;
}

const maxLine = 400;
const maxFailureLines = 120;
const maxSummaryLines = 15;
const linesAfterFailure = 10;
/** If no line looks like a failure, the cause is most likely at the end. */
const lastLines = { usual: 3, unexplained: 25 };

interface Line {
  readonly index: number;
  readonly text: string;
}

/**
 * Shortens an output line by line, in constant memory. Keeps the first failures, since the first
 * often causes the others, and the last summaries and other lines.
 */
export class Digester {
  readonly #rules: Rules;
  readonly #failures: Line[] = [];
  readonly #others: Line[] = [];
  readonly #summaries: Line[] = [];
  readonly #last: Line[] = [];
  #previous: Line | undefined;
  #after = 0;
  #lines = 0;

  constructor(rules: Rules) {
    this.#rules = rules;
  }

  add(raw: string): void {
    const line = { index: this.#lines++, text: shownOf(raw) };
    const worth = this.#rules.worthOf(stripVTControlCharacters(line.text));
    if (worth.isNoise) {
      this.#after = 0;
    } else {
      push(this.#last, line, lastLines.unexplained);
      if (worth.isSummary) push(this.#summaries, line, maxSummaryLines);
      this.#addFailure(line, worth.isFailure);
      if (this.#others.length < this.#rules.maxOthers && line.text !== '') this.#others.push(line);
    }
    this.#previous = worth.isNoise ? undefined : line;
  }

  finish(isGood: boolean): Digest {
    const isExplained = isGood || this.#failures.length > 0;
    const last = this.#last.slice(-(isExplained ? lastLines.usual : lastLines.unexplained));
    const shown = new Map<number, string>();
    for (const { index, text } of [
      ...this.#failures,
      ...this.#others,
      ...this.#summaries,
      ...last,
    ]) {
      shown.set(index, text);
    }
    return { lines: this.#lines, text: this.#written(shown), left: this.#lines - shown.size };
  }

  #addFailure(line: Line, isFailure: boolean): void {
    if (isFailure) {
      // The preceding line often names the file.
      if (this.#previous && this.#after === 0) this.#keepFailure(this.#previous);
      this.#keepFailure(line);
      this.#after = linesAfterFailure;
    } else if (this.#after > 0) {
      this.#keepFailure(line);
      this.#after -= 1;
    }
  }

  #keepFailure(line: Line): void {
    if (this.#failures.length < maxFailureLines) this.#failures.push(line);
  }

  #written(shown: ReadonlyMap<number, string>): string {
    let text = '';
    let next = 0;
    for (const index of [...shown.keys()].toSorted((a, b) => a - b)) {
      if (index > next) text += gap(index - next);
      text += `${shown.get(index)}\n`;
      next = index + 1;
    }
    if (next < this.#lines) text += gap(this.#lines - next);
    return text;
  }
}

function push(lines: Line[], line: Line, most: number): void {
  lines.push(line);
  if (lines.length > most) lines.shift();
}

function gap(count: number): string {
  return `... ${count} ${count === 1 ? 'line' : 'lines'} omitted\n`;
}

/** The line as a terminal would finally show it: a progress bar overwrites itself after \r. */
function shownOf(raw: string): string {
  const text = raw.replace(/\r+$/, '');
  const last = text.slice(text.lastIndexOf('\r') + 1);
  if (last.length <= maxLine) return last;
  return `${last.slice(0, maxLine)}... (${last.length - maxLine} more characters)`;
}
