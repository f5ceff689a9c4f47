import type { Outlet } from './terminal.js';
import { safeForScreen, widthOf } from '../render/text.js';

const defaultRows = 24;

/** Redraws in place on a terminal; elsewhere prints one frame after the other. */
export class Frame {
  #lines = 0;

  constructor(private readonly out: Outlet) {}

  /** Number of table rows that fit, without the heading. */
  get rows(): number {
    if (!this.out.isScreen) return Infinity;
    const { rows = defaultRows } = this.out.stream as { rows?: number };
    return Math.max(1, rows - 3);
  }

  draw(text: string): void {
    const { out } = this;
    const back = `\u001B[${this.#lines}A\u001B[J`;
    // One write, to avoid flicker.
    if (out.isScreen && this.#lines > 0) out.writeRaw(`${back}${safeForScreen(text)}`);
    else out.write(text);
    // A line longer than the screen wraps to several rows.
    const rowsOf = (line: string) => Math.max(1, Math.ceil(widthOf(line) / out.columns));
    this.#lines = text
      .split('\n')
      .slice(0, -1)
      .reduce((sum, line) => sum + rowsOf(line), 0);
  }
}
