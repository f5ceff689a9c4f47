/*
 * What a terminal would show of a program's output, line by line. Programs that draw move the
 * cursor up and write over what they wrote before; without that every frame of a spinner would be
 * a line of its own.
 */

// Sequences of control, and the text between them.
const tokens =
  // eslint-disable-next-line no-control-regex
  /\x1b\[([\d;:<=>?]*)[ -/]*([@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[PX^_][^\x1b]*(?:\x1b\\)?|\x1b[ -/]*[0-~]|[\x00-\x1f\x7f]|[^\x00-\x1f\x7f\x1b]+/g;

const widest = 20_000;

export class TerminalText {
  readonly rows: string[] = [''];
  #row = 0;
  #column = 0;

  /** Processes the next part of the output. */
  write(text: string): void {
    for (const [token, parameters, final] of text.matchAll(tokens)) {
      if (final !== undefined) this.#control(final, parameters ?? '');
      else if (token >= ' ' && token[0] !== '\x7f') this.#put(token);
      else this.#single(token);
    }
  }

  #single(token: string): void {
    switch (token) {
      case '\n':
        this.#row++;
        if (this.#row === this.rows.length) this.rows.push('');
        this.#column = 0;
        break;
      case '\r':
        this.#column = 0;
        break;
      case '\b':
        this.#column = Math.max(0, this.#column - 1);
        break;
      case '\t':
        this.#column += 8 - (this.#column % 8);
        break;
      default:
    }
  }

  #put(text: string): void {
    const row = this.rows[this.#row]!;
    const column = Math.min(this.#column, widest);
    const before = row.length < column ? row.padEnd(column) : row.slice(0, column);
    this.rows[this.#row] = (before + text + row.slice(column + text.length)).slice(0, widest);
    this.#column = column + text.length;
  }

  #control(final: string, parameters: string): void {
    const count = Math.max(1, Number.parseInt(parameters, 10) || 1);
    switch (final) {
      case 'A':
        this.#row = Math.max(0, this.#row - count);
        break;
      case 'B':
        this.#row = Math.min(this.rows.length - 1, this.#row + count);
        break;
      case 'C':
        this.#column = Math.min(widest, this.#column + count);
        break;
      case 'D':
        this.#column = Math.max(0, this.#column - count);
        break;
      case 'G':
        this.#column = Math.min(widest, count - 1);
        break;
      case 'K':
        this.#eraseLine(Number.parseInt(parameters, 10) || 0);
        break;
      case 'J':
        this.#eraseBelow(Number.parseInt(parameters, 10) || 0);
        break;
      default:
    }
  }

  #eraseLine(part: number): void {
    const row = this.rows[this.#row]!;
    if (part === 0) this.rows[this.#row] = row.slice(0, this.#column);
    else if (part === 1) this.rows[this.#row] = row.slice(this.#column).padStart(row.length);
    else this.rows[this.#row] = '';
  }

  /** Clearing the whole screen does not discard the text that was on it. */
  #eraseBelow(part: number): void {
    if (part !== 0) return;
    this.#eraseLine(0);
    this.rows.length = this.#row + 1;
  }
}
