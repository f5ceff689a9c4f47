import { Refusal, UsageError } from '@millrace/kit/errors';
import { systemClock } from '@millrace/kit/clock';
import { durationOf, wholeNumber } from './arguments.js';
import { rest } from './rest.js';
import { Frame } from './frame.js';
import type { Flags, Tools } from './tools.js';

type Here = Pick<Tools, 'terminal' | 'lifecycle'>;

export interface WatchFlags {
  readonly interval?: string;
}

const minIntervalMs = 100;

/** Unavailable for a while: a server that is being restarted will be back. */
const passing = new Set(['UNAVAILABLE', 'STORAGE_UNAVAILABLE', 'RATE_LIMITED']);

/** Runs a command that shows something again and again. */
export function watch(flags: WatchFlags, tools: Here, show: () => Promise<void>): Promise<void> {
  const { out, format } = tools.terminal;
  return refresh(flags, { everyMs: 2_000, isEndless: true }, tools, async (frame) => {
    const text = await out.capture(show);
    // One line for each sample, so that a program can read them one by one.
    if (format === 'json') out.writeRaw(`${JSON.stringify(JSON.parse(text))}\n`);
    else if (format === 'table') frame.draw(fitted(text, frame.rows));
    else out.writeRaw(text);
  });
}

/**
 * Repeats `show`: as often as --count says, or else until Ctrl-C on a terminal and for a program,
 * and once elsewhere.
 */
export async function refresh(
  flags: Flags<'interval count'>,
  { everyMs, isEndless = false }: { everyMs: number; isEndless?: boolean },
  { terminal, lifecycle }: Here,
  show: (frame: Frame) => Promise<void>,
): Promise<void> {
  const { out, err, json } = terminal;
  const intervalMs = durationOf(flags.interval, '--interval') ?? everyMs;
  if (intervalMs < minIntervalMs) throw new UsageError('--interval must be at least 100ms.');
  const isLive = isEndless || json || out.isScreen;
  const samples = wholeNumber(flags.count, '--count') ?? (isLive ? Infinity : 1);
  const frame = new Frame(out);
  for (let sample = 1; sample <= samples; sample++) {
    const startedAt = systemClock.monotonic();
    try {
      await show(frame);
    } catch (error) {
      if (sample === 1 || !(error instanceof Refusal) || !passing.has(error.code)) throw error;
      const { code, detail } = error;
      if (json) err.write(`${JSON.stringify({ error: { code, message: detail } })}\n`);
      else frame.draw(`${out.paint('bad', 'No response:')} ${detail}\n`);
    }
    if (sample === samples) return;
    const tookMs = systemClock.monotonic() - startedAt;
    await rest(Math.max(0, intervalMs - tookMs), lifecycle.interrupted);
  }
}

/** What fits on the screen: a frame that scrolls cannot be drawn over. */
function fitted(text: string, rows: number): string {
  const lines = text.trimEnd().split('\n');
  if (lines.length <= rows + 1) return text;
  const left = lines.length - rows;
  return `${lines.slice(0, rows).join('\n')}\n... and ${left} more lines\n`;
}
