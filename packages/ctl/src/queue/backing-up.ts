import { mkdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { UsageError } from '@millrace/kit/errors';
import { wholeNumber } from '../base/arguments.js';
import type { Tools } from '../base/tools.js';
import { readBase, restoreService, saveBackup, showBackup } from '../db/service-backup.js';
import { queueApi, type QueueFlags } from './api.js';
import { locateQueue } from './locate.js';

/** Where the embedded store is in a data directory. */
const storeIn = (data: string) => join(data, 'queue');

export interface BackupFlags extends QueueFlags {
  out: string;
  base?: boolean;
  since?: string;
  sinceSeq?: string;
}

export async function backupQueues(flags: BackupFlags, tools: Tools): Promise<void> {
  const sinceSeq = wholeNumber(flags.sinceSeq, '--since-seq', 1);
  if (flags.since !== undefined && sinceSeq !== undefined) {
    throw new UsageError('Give --since or --since-seq, not both.');
  }
  if (flags.base && (flags.since !== undefined || sinceSeq !== undefined)) {
    throw new UsageError('--base is a full backup. Leave out --since and --since-seq.');
  }
  // A wrong address or token is reported by a call that knows how.
  await queueApi(flags, tools).call('listQueues');
  const { url, token } = locateQueue(flags, tools.terminal.env);
  const base = flags.since === undefined ? sinceSeq : await readBase(flags.since);
  if (flags.base) await mkdir(flags.out, { recursive: true, mode: 0o700 });
  // The name of a base backup has its commit number, which is not known yet.
  const written = flags.base ? join(flags.out, 'unnamed.backup') : flags.out;
  const made = await saveBackup({ url: `${url}/v1/admin/backup`, token }, written, base, tools);
  const { baseBackupName } = await import('@millrace/db');
  const file = flags.base ? join(flags.out, baseBackupName(made.header.seq)) : written;
  if (flags.base) await rename(written, file);
  showBackup(file, made, tools);
}

export async function verifyQueues(
  flags: { data?: string; backup?: string },
  tools: Tools,
): Promise<void> {
  const { verifyBackup, verifyData } = await import('../db/verifying.js');
  if (flags.data !== undefined && flags.backup === undefined) {
    await verifyData(storeIn(flags.data), tools);
  } else if (flags.backup !== undefined && flags.data === undefined) {
    await verifyBackup(flags.backup, tools);
  } else throw new UsageError('Name what to check: --data DIR or --backup FILE.');
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
