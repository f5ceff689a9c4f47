/** Parsed input of the fake agent's terminal. */
export type Key =
  | { key: 'text'; text: string; isPaste: boolean }
  | { key: 'enter' }
  | { key: 'escape' }
  | { key: 'backspace' }
  | { key: 'end' };

const pasteStart = '\u001b[200~';
const pasteEnd = '\u001b[201~';

/** Splits terminal input into keys and pastes. */
export class Keys {
  #paste: string | undefined;

  take(chunk: string): Key[] {
    const keys: Key[] = [];
    let rest = chunk;
    while (rest !== '') {
      if (this.#paste !== undefined) {
        const end = rest.indexOf(pasteEnd);
        this.#paste += end === -1 ? rest : rest.slice(0, end);
        if (end === -1) return keys;
        keys.push({ key: 'text', text: this.#paste, isPaste: true });
        this.#paste = undefined;
        rest = rest.slice(end + pasteEnd.length);
      } else if (rest.startsWith(pasteStart)) {
        this.#paste = '';
        rest = rest.slice(pasteStart.length);
      } else {
        const [whole, key] = nextKey(rest);
        if (key) keys.push(key);
        rest = rest.slice(whole.length);
      }
    }
    return keys;
  }
}

function nextKey(rest: string): [string, Key | undefined] {
  const first = rest[0]!;
  if (first === '\r' || first === '\n') return [first, { key: 'enter' }];
  if (first === '\u007f' || first === '\b') return [first, { key: 'backspace' }];
  if (first === '\u0003' || first === '\u0004') return [first, { key: 'end' }];
  if (first === '\u001b') {
    // eslint-disable-next-line no-control-regex
    const sequence = /^\u001b(?:\[[\d;?]*[ -/]*[@-~]|O.)/.exec(rest);
    return sequence ? [sequence[0], undefined] : [first, { key: 'escape' }];
  }
  // eslint-disable-next-line no-control-regex
  const text = /^[^\u0000-\u001f\u007f]+/.exec(rest)?.[0];
  if (text === undefined) return [first, undefined];
  return [text, { key: 'text', text, isPaste: false }];
}

/**
 * Prints messages from top to bottom, and redraws a part below them: the current work, a question,
 * or the input line.
 */
export class Screen {
  #bottomLines = 0;

  constructor(
    private readonly out: (text: string) => void,
    private readonly columns: () => number,
  ) {}

  /** Says something that stays. */
  say(lines: readonly string[], bottom: readonly string[]): void {
    this.#draw(lines, bottom);
  }

  redraw(bottom: readonly string[]): void {
    this.#draw([], bottom);
  }

  #draw(lines: readonly string[], bottom: readonly string[]): void {
    const up = this.#bottomLines > 0 ? `\u001b[${this.#bottomLines}A\r` : '\r';
    const width = Math.max(20, this.columns() - 1);
    const all = [...lines, ...bottom].map((line) => line.slice(0, width));
    this.out(`${up}\u001b[J${all.map((line) => `${line}\r\n`).join('')}`);
    this.#bottomLines = bottom.length;
  }
}
