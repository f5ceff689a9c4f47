import { restoreService } from '../db/restoring.js';
import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { counted } from '@millrace/contract/lists';
import { UsageError } from '@millrace/kit/errors';
import { makePrivateDirectory } from '@millrace/kit/private-files';
import { wholeNumber } from '../base/arguments.js';
import type { Flags, Tools } from '../base/tools.js';
import { readBase, requireOtherFile, saveBackup, showBackup } from '../db/service-backup.js';
import { verifyEither } from '../db/verifying.js';
import { queueApi, type QueueFlags } from './api.js';
import { locateQueue } from './locate.js';

/** Where the embedded store is in a data directory. */
const storeIn = (data: string) => join(data, 'queue');

export type BackupFlags = QueueFlags & Flags<'since sinceSeq', 'base'> & { out: string };

export async function backupQueues(flags: BackupFlags, tools: Tools): Promise<void> {
  const sinceSeq = wholeNumber(flags.sinceSeq, '--since-seq', 1);
  if (flags.since !== undefined && sinceSeq !== undefined) {
    throw new UsageError('Give --since or --since-seq, not both.');
  }
  if (flags.base && (flags.since !== undefined || sinceSeq !== undefined)) {
    throw new UsageError('--base is a full backup. Leave out --since and --since-seq.');
  }
  requireOtherFile(flags.since, flags.out);
  // A wrong address or token is reported by a call that knows how.
  await queueApi(flags, tools).call('listQueues');
  const { url, token } = locateQueue(flags, tools.terminal.env);
  const base = flags.since === undefined ? sinceSeq : await readBase(flags.since);
  if (flags.base) makePrivateDirectory(flags.out);
  // The name of a base backup has its commit number, which is not known yet.
  const written = flags.base ? join(flags.out, 'unnamed.backup') : flags.out;
  const made = await saveBackup({ url: `${url}/v1/admin/backup`, token }, written, base, tools);
  const { baseBackupName } = await import('@millrace/db');
  const file = flags.base ? join(flags.out, baseBackupName(made.header.seq)) : written;
  if (flags.base) await rename(written, file);
  showBackup(file, made, tools);
}

export function verifyQueues(
  flags: { data?: string; backup?: string },
  tools: Tools,
): Promise<void> {
  return verifyEither(flags, tools, async (data) => {
    const { verifyTasks } = await import('@millrace/queue');
    const report = await verifyTasks(storeIn(data));
    const { queues, tasks } = report;
    const checked = `${counted(tasks, 'task')} of ${counted(queues, 'queue')} with their indexes`;
    return { report, checked, more: { queues, tasks } };
  });
}

export async function restoreQueues(
  { from, ...flags }: { from: string[]; data: string; to?: string },
  tools: Tools,
): Promise<void> {
  const parts = {
    store: storeIn(flags.data),
    name: 'the queues',
    command: 'ctl queue serve --data',
  };
  await restoreService(from, flags, parts, tools);
}
