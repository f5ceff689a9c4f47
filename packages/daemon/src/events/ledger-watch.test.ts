import { appendFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '@millrace/kit/clock';
import { expect, test, vi } from 'vitest';
import { watchLedger } from './reports.js';

test('a ledger that grows is seen, and one that stays as it is is not', async () => {
  const home = mkdtempSync(join(tmpdir(), 'mr-ledger-'));
  const file = join(home, 'ledger.jsonl');
  let polls = 0;
  const clock = {
    ...systemClock,
    after: (ms: number, run: () => void) => (polls++, systemClock.after(ms, run)),
  };
  const onChange = vi.fn();
  const patience = { timeout: 60_000, interval: 5 };
  const watch = watchLedger({ file, clock, onChange, intervalMs: 5 });
  try {
    await vi.waitFor(() => expect(polls).toBeGreaterThan(3), patience);
    expect(onChange).not.toHaveBeenCalled();
    appendFileSync(file, '{}\n');
    await vi.waitFor(() => expect(onChange).toHaveBeenCalledTimes(1), patience);
    appendFileSync(file, '{}\n');
    await vi.waitFor(() => expect(onChange).toHaveBeenCalledTimes(2), patience);
  } finally {
    await watch.close();
    rmSync(home, { recursive: true, force: true });
  }
});
