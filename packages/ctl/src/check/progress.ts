import { statSync } from 'node:fs';
import { systemClock, type Timer } from '@millrace/kit/clock';
import { humanBytes, humanDuration } from '@millrace/kit/units';
import { cut, printable } from '../render/text.js';
import type { Tools } from '../base/tools.js';

const everyMs = 1_000;
const clearLine = '\r\u001B[2K';

/** Shows on a terminal how long a command has been running, since its output is held back. */
export function watchProgress(
  command: readonly string[],
  logPath: string,
  { terminal: { err, json, env } }: Tools,
): { stop(): void } | undefined {
  if (!err.isScreen || json || env['TERM'] === 'dumb') return undefined;
  const startedAt = systemClock.monotonic();
  let timer: Timer;
  const show = (): void => {
    const elapsed = humanDuration(systemClock.monotonic() - startedAt);
    const { size = 0 } = statSync(logPath, { throwIfNoEntry: false }) ?? {};
    const text = `${printable(command.join(' '))} (${elapsed}, ${humanBytes(size)} of output)`;
    err.writeRaw(clearLine);
    err.write(err.paint('dim', cut(text, err.columns - 1)));
    timer = systemClock.after(everyMs, show);
  };
  timer = systemClock.after(everyMs, show);
  return {
    stop() {
      timer.cancel();
      err.writeRaw(clearLine);
    },
  };
}
