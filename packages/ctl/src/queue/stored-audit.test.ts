import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '@millrace/kit/clock';
import { silentLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { openStore, type QueueConfig } from '@millrace/queue';
import { expect, onTestFinished, test } from 'vitest';
import { judge } from './audit-verify.js';
import { withStoredAudit } from './stored-audit.js';

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'ctl-stored-audit-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

test('the log of a data directory is read page by page and found whole', async () => {
  const dataDirectory = folder();
  const world = { clock: systemClock, random: systemRandom, log: silentLog };
  const store = await openStore('embedded', { ...world, dataDirectory });
  const who = { queue: 'mail', now: 1, by: 'ops' };
  const config = { callback: {}, circuit_breaker: {} } as QueueConfig;
  await store.putQueue({ ...who, config });
  const held = withStoredAudit(dataDirectory, judge);
  await expect(held).rejects.toThrow('is in use by');
  const act = { ...who, ids: [], diedBy: 0, selector: { ids: [] } };
  const acts = 1_203;
  await Promise.all(
    Array.from({ length: acts - 1 }, () => store.actOnDead({ action: 'purge', ...act })),
  );
  await store.close();
  const verdict = await withStoredAudit(dataDirectory, judge);
  expect(verdict).toMatchObject({ ok: true, records: acts, last_seq: acts });
});

test('a directory without a queue is refused and left alone', async () => {
  const empty = folder();
  await expect(withStoredAudit(empty, judge)).rejects.toThrow('contains no queue');
  expect(readdirSync(empty)).toEqual([]);
});
