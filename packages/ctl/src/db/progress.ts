import { systemClock } from '@millrace/kit/clock';
import { humanBytes, humanCount, humanDuration } from '@millrace/kit/units';
import type { Terminal } from '../base/terminal.js';
import type { Tools } from '../base/tools.js';

const redrawMs = 100;

export interface Amount {
  records?: number;
  /** Total number of records, if known. */
  of?: number;
  bytes?: number;
  /** Total number of bytes, if known. */
  ofBytes?: number;
}

/** Part of work whose units mean nothing to a reader. */
interface Share {
  readonly done: number;
  readonly of: number;
}

/** One progress line on stderr, only on a terminal. */
export class Progress {
  readonly #started = systemClock.monotonic();
  /** When the step began that the present verb names: its rate is its own. */
  #stepStarted = this.#started;
  #step: string;
  #drawnAt = -Infinity;
  #width = 0;

  constructor(
    private readonly terminal: Terminal,
    private readonly verb: string,
  ) {
    this.#step = verb;
  }

  show(amount: Amount, verb = this.verb): void {
    const { err } = this.terminal;
    if (!err.isScreen) return;
    const now = systemClock.monotonic();
    if (verb !== this.#step) this.#stepStarted = now;
    this.#step = verb;
    if (now - this.#drawnAt < redrawMs) return;
    this.#drawnAt = now;
    this.#draw(`${verb} ${amountText(amount)}${this.#rate(amount, now)}`.trimEnd());
  }

  #draw(text: string): void {
    this.terminal.err.write(`\r${text.padEnd(this.#width)}`);
    this.#width = text.length;
  }

  /** For work whose amount is not known. */
  showTime(): void {
    if (this.terminal.err.isScreen) this.#draw(`${this.verb}, ${humanDuration(this.elapsedMs)}`);
  }

  /** Percent and the time left, from when this work began. */
  showShare({ done, of }: Share, elapsedMs = this.elapsedMs): void {
    if (!this.terminal.err.isScreen) return;
    const share = of > 0 ? Math.min(1, done / of) : 0;
    const left = share > 0 && share < 1 ? `, ${leftText(share, elapsedMs)}` : '';
    this.#draw(`${this.verb} ${barText(share)}${left}`);
  }

  /** Clears the line. */
  end(): void {
    if (this.#width > 0) this.terminal.err.write(`\r${' '.repeat(this.#width)}\r`);
    this.#width = 0;
  }

  get elapsedMs(): number {
    return systemClock.monotonic() - this.#started;
  }

  #rate({ records = 0, of = 0, bytes = 0, ofBytes = 0 }: Amount, now: number): string {
    const elapsedMs = now - this.#stepStarted;
    if (elapsedMs < 1000 || records === 0) return '';
    const each = elapsedMs / records;
    const share = ofBytes > 0 ? bytes / ofBytes : records / of;
    const isPart = share > 0 && share < 1;
    const left = isPart ? `, ${leftText(share, elapsedMs)}` : '';
    return `, ${humanCount(Math.round(1000 / each))}/s${left}`;
  }
}

function leftText(share: number, elapsedMs: number): string {
  return `${humanDuration(elapsedMs / share - elapsedMs)} left`;
}

const tickMs = 1_000;

interface ShownWork<Result> {
  readonly verb: string;
  readonly work: () => Promise<Result>;
  /** How far the server is; undefined if it does not say. */
  readonly read?: () => Promise<(Share & { readonly elapsedMs: number }) | undefined>;
  /** Shows nothing of work that is done sooner. */
  readonly delayMs?: number;
}

/** Shows percent and time left of work that a server does, or the time it takes. */
export async function whileShown<Result>(
  { terminal, lifecycle }: Pick<Tools, 'terminal' | 'lifecycle'>,
  { verb, work, read, delayMs = 0 }: ShownWork<Result>,
): Promise<Result> {
  if (!terminal.err.isScreen) return work();
  const progress = new Progress(terminal, verb);
  const end = new AbortController();
  const ticks = async (): Promise<void> => {
    const signal = AbortSignal.any([end.signal, lifecycle.interrupted]);
    if (delayMs > 0) await systemClock.sleep(delayMs, signal).catch(() => undefined);
    while (!signal.aborted) {
      // Its failure is reported by the work itself, if it matters.
      const share = await read?.().catch(() => undefined);
      if (signal.aborted) return;
      if (share) progress.showShare(share, share.elapsedMs);
      else progress.showTime();
      await systemClock.sleep(tickMs, signal).catch(() => undefined);
    }
  };
  const ticking = ticks();
  try {
    return await work();
  } finally {
    end.abort();
    await ticking;
    progress.end();
  }
}

const barWidth = 20;

function barText(share: number): string {
  const done = Math.floor(Math.min(1, share) * barWidth);
  return `[${'#'.repeat(done)}${'.'.repeat(barWidth - done)}] ${Math.floor(share * 100)}%`;
}

export function amountText({ records, of, bytes, ofBytes }: Amount): string {
  const parts: string[] = [];
  if (bytes !== undefined && ofBytes) parts.push(barText(bytes / ofBytes));
  if (records !== undefined && records > 0) {
    const total = of ? ` of ${humanCount(of)} (${Math.floor((100 * records) / of)}%)` : '';
    parts.push(`${humanCount(records)}${total} records`);
  }
  if (bytes !== undefined) parts.push(humanBytes(bytes));
  return parts.join(', ');
}
