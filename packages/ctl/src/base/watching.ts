import { Refusal, UsageError } from '@millrace/kit/errors';
import { durationOf } from './arguments.js';
import { rest } from './rest.js';
import { Frame } from './frame.js';
import type { Tools } from './tools.js';

type Here = Pick<Tools, 'terminal' | 'lifecycle'>;

export interface WatchFlags {
  readonly interval?: string;
}

const defaultIntervalMs = 2_000;
const minIntervalMs = 100;

/** Unavailable for a while: a server that is being restarted will be back. */
const passing = new Set(['UNAVAILABLE', 'STORAGE_UNAVAILABLE', 'RATE_LIMITED']);

/** Runs a command that shows something again and again. */
export async function watch(
  flags: WatchFlags,
  { terminal, lifecycle }: Here,
  show: () => Promise<void>,
): Promise<void> {
  const { out, err, format } = terminal;
  const intervalMs = durationOf(flags.interval, '--interval') ?? defaultIntervalMs;
  if (intervalMs < minIntervalMs) throw new UsageError('--interval must be at least 100ms.');
  const frame = new Frame(out);
  for (let sample = 1; ; sample++) {
    try {
      const text = await out.capture(show);
      // One line for each sample, so that a program can read them one by one.
      if (format === 'json') out.writeRaw(`${JSON.stringify(JSON.parse(text))}\n`);
      else if (format === 'table') frame.draw(fitted(text, frame.rows));
      else out.writeRaw(text);
    } catch (error) {
      if (sample === 1 || !(error instanceof Refusal) || !passing.has(error.code)) throw error;
      if (format === 'table') frame.draw(`${out.paint('bad', 'No response:')} ${error.detail}\n`);
      else err.write(`${JSON.stringify({ error: { code: error.code, message: error.detail } })}\n`);
    }
    await rest(intervalMs, lifecycle.interrupted);
  }
}

/** What fits on the screen: a frame that scrolls cannot be drawn over. */
function fitted(text: string, rows: number): string {
  const lines = text.trimEnd().split('\n');
  if (lines.length <= rows + 1) return text;
  const left = lines.length - rows;
  return `${lines.slice(0, rows).join('\n')}\n... and ${left} more lines\n`;
}
