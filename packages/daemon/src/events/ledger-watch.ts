import { stat } from 'node:fs/promises';
import type { Clock, Timer } from '@millrace/kit/clock';

export interface LedgerWatchParts {
  file: string;
  clock: Clock;
  onChange: () => void;
  intervalMs?: number;
}

const defaultIntervalMs = 2_000;

/**
 * Detects changes of the savings ledger by polling its size and mtime, because `ctl` appends to it
 * without calling the daemon.
 */
export function watchLedger(parts: LedgerWatchParts): { close(): Promise<void> } {
  const { file, clock, onChange, intervalMs = defaultIntervalMs } = parts;
  let timer: Timer | undefined;
  let isClosed = false;
  let seen: string | undefined;
  const poll = async () => {
    const found = await stat(file).catch(() => undefined);
    const now = found ? `${found.ino}:${found.size}:${found.mtimeMs}` : 'none';
    if (seen !== undefined && now !== seen && !isClosed) onChange();
    seen = now;
    if (!isClosed) timer = clock.after(intervalMs, next);
  };
  let polling = Promise.resolve();
  const next = () => void (polling = poll());
  next();
  return {
    async close() {
      isClosed = true;
      timer?.cancel();
      await polling;
    },
  };
}
