import { resolve } from 'node:path';
import { systemClock } from '@millrace/kit/clock';
import { Refusal, UsageError } from '@millrace/kit/errors';
import { silentLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { humanCount, humanDuration } from '@millrace/kit/units';
import { Progress } from '../db/progress.js';
import type { Tools } from '../base/tools.js';

export interface MigrateFlags {
  from: string;
  to: string;
  data?: string;
}

interface Plan {
  url: string;
  direction: 'in' | 'out';
  dataDirectory: string;
}

interface Tally {
  queues: number;
  tasks: number;
  audit_records: number;
  resumed: boolean;
}

export async function migrate(flags: MigrateFlags, tools: Tools): Promise<void> {
  const { url, direction, dataDirectory } = planOf(flags);
  const { terminal, lifecycle } = tools;
  const { openStore, StorageUnavailable, transferTasks } = await import('@millrace/queue');
  const world = { clock: systemClock, random: systemRandom, log: silentLog };
  const store = await openStore(url, { ...world, dataDirectory, forTransfer: true });
  const progress = new Progress(terminal, 'Moving');
  try {
    const tally = await transferTasks(store, {
      ...world,
      direction,
      dataDirectory,
      signal: lifecycle.interrupted,
      progress: (step, records, of) =>
        progress.show({ records, of }, step === 'move' ? 'Moving' : 'Comparing'),
    });
    progress.end();
    const text =
      `${wordsOf(tally)} in ${humanDuration(progress.elapsedMs)}; source and target are ` +
      'equal.\n';
    terminal.show(tally, text);
  } catch (error) {
    if (!(error instanceof StorageUnavailable)) throw error;
    const advice = 'Run it again when it is back, to resume.';
    throw new Refusal('STORAGE_UNAVAILABLE', `${error.message}. ${advice}`, { cause: error });
  } finally {
    progress.end();
    await store.close();
  }
}

export function planOf({ from, to, data = './data' }: MigrateFlags): Plan {
  const [isFromUrl, isToUrl] = [isPostgres('--from', from), isPostgres('--to', to)];
  if (isFromUrl === isToUrl) {
    throw new UsageError('Name one of --from and --to as embedded, the other as postgres://...');
  }
  const dataDirectory = resolve(data);
  return isToUrl
    ? { url: to, direction: 'in', dataDirectory }
    : { url: from, direction: 'out', dataDirectory };
}

function isPostgres(flag: string, value: string): boolean {
  if (value === 'embedded') return false;
  if (/^postgres(?:ql)?:\/\//.test(value)) return true;
  // Not shown: it may be a mistyped URL with a password.
  throw new UsageError(`${flag} must be embedded, or a URL such as postgres://user@host/db.`);
}

function wordsOf({ queues, tasks, audit_records: records, resumed }: Tally): string {
  const counts = [
    counted(queues, 'queue'),
    counted(tasks, 'task'),
    counted(records, 'audit record'),
  ];
  const before = resumed ? ', some of them by an earlier run,' : '';
  return `Moved ${counts.slice(0, 2).join(', ')} and ${counts[2]}${before}`;
}

function counted(count: number, noun: string): string {
  return `${humanCount(count)} ${noun}${count === 1 ? '' : 's'}`;
}
