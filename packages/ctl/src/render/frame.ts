import type { Outlet } from '../terminal.js';
import { safeForScreen, widthOf } from './text.js';

const usualRows = 24;

/** Draws over what it drew before, where somebody is looking; elsewhere one after the other. */
export class Frame {
  #lines = 0;

  constructor(private readonly out: Outlet) {}

  /** How many rows of a table there is room for, beside its heading. */
  get rows(): number {
    if (!this.out.isScreen) return Infinity;
    const { rows = usualRows } = this.out.stream as { rows?: number };
    return Math.max(1, rows - 3);
  }

  draw(text: string): void {
    const { out } = this;
    const back = `\u001B[${this.#lines}A\u001B[J`;
    // One write, so that the screen does not flicker.
    if (out.isScreen && this.#lines > 0) out.writeRaw(`${back}${safeForScreen(text)}`);
    else out.write(text);
    // A line that is too long for the screen takes more of its rows.
    const rowsOf = (line: string) => Math.max(1, Math.ceil(widthOf(line) / out.columns));
    this.#lines = text
      .split('\n')
      .slice(0, -1)
      .reduce((sum, line) => sum + rowsOf(line), 0);
  }
}
