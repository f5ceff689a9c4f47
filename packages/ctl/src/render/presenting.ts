import { Refusal, UsageError } from '@millrace/kit/errors';
import { durationOf } from '../db/arguments.js';
import { rest } from '../rest.js';
import type { Tools } from '../tools.js';
import { Frame } from './frame.js';

export interface PresentFlags {
  readonly watch?: boolean;
  readonly interval?: string;
}

const defaultIntervalMs = 2_000;
const minIntervalMs = 100;

/** Runs a command that shows something: once, paged if it is long, or again and again. */
export async function present(
  flags: PresentFlags,
  tools: Tools,
  show: () => Promise<void>,
): Promise<void> {
  if (flags.watch === true) return watch(flags, tools, show);
  if (flags.interval !== undefined) throw new UsageError('--interval needs --watch.');
  const { out, in: input, pager } = tools.terminal;
  if (!out.isScreen || !input.isScreen || pager === undefined) return show();
  const text = await out.capture(show);
  const { rows = 24 } = out.stream as { rows?: number };
  const isLong = text.split('\n').length > rows;
  if (!isLong || !(await paged(text, pager, tools))) out.writeRaw(text);
}

/** Unavailable for a while: a server that is being restarted will be back. */
const passing = new Set(['UNAVAILABLE', 'STORAGE_UNAVAILABLE', 'RATE_LIMITED']);

async function watch(
  flags: PresentFlags,
  { terminal, lifecycle }: Tools,
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

/** Whether the pager has shown the text; one that is not installed has not. */
async function paged(text: string, pager: string, { terminal, lifecycle }: Tools) {
  const { spawn } = await import('node:child_process');
  return lifecycle.handOver(async () => {
    // R keeps colours, F and X leave a short text on the screen.
    const env = { LESS: 'FRX', ...terminal.env };
    const child = spawn(pager, { shell: true, stdio: ['pipe', 'inherit', 'ignore'], env });
    // The user may quit before the end of the text.
    child.stdin.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
    });
    child.stdin.end(text);
    const notFound = 127;
    return new Promise<boolean>((resolve, reject) => {
      child.on('error', reject);
      child.on('exit', (code) => resolve(code !== notFound));
    });
  });
}
