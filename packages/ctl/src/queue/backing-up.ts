import { join } from 'node:path';
import { Refusal, UsageError } from '@millrace/kit/errors';
import { humanBytes } from '@millrace/kit/units';
import { asTyped } from '../base/command-name.js';
import { harmless } from '../base/exchange.js';
import type { Tools } from '../base/tools.js';
import { writeWhole } from '../db/atomic-file.js';
import { queueApi, type QueueFlags } from './api.js';
import { locateQueue } from './locate.js';

/** Where the embedded store is in a data directory. */
const storeIn = (data: string) => join(data, 'queue');

export async function backupQueues(
  flags: QueueFlags & { out: string },
  tools: Tools,
): Promise<void> {
  const { terminal, lifecycle } = tools;
  // A wrong address or token is reported by a call that knows how.
  await queueApi(flags, tools).call('listQueues');
  const { url, token } = locateQueue(flags, terminal.env);
  const signal = lifecycle.interrupted;
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const response = await fetch(`${url}/v1/admin/backup`, { headers, signal });
  if (!response.ok || !response.body) {
    const { code = 'UNAVAILABLE', detail = '' } = (await response.json()) as Record<string, string>;
    throw new Refusal(code, harmless(detail));
  }
  const { checkBackup } = await import('@millrace/db');
  const check = async (unfinished: string) => void (await checkBackup(unfinished));
  await writeWhole(flags.out, response.body, { signal, check });
  const { header, trailer } = await checkBackup(flags.out);
  const { out, json } = terminal;
  const made = { file: flags.out, seq: header.seq, created_at: header.createdAt, ...trailer };
  const text = `Backed up ${humanBytes(trailer.bytes)} at commit ${header.seq} to ${flags.out}.\n`;
  out.write(json ? `${JSON.stringify(made, null, 2)}\n` : text);
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
  { from, data }: { from: string; data: string },
  { terminal: { out, json } }: Tools,
): Promise<void> {
  const [{ restore: restoreFiles }, { mkdir }] = await Promise.all([
    import('@millrace/db'),
    import('node:fs/promises'),
  ]);
  await mkdir(data, { recursive: true, mode: 0o700 });
  const restored = await restoreFiles([from], storeIn(data), {}).catch((error: unknown) => {
    // The command was used rightly: the file or the directory does not allow it.
    if (!(error instanceof UsageError)) throw error;
    throw new Refusal('RESTORE_REFUSED', error.message, { cause: error });
  });
  const shown = { data, seq: restored.seq, lineage_id: restored.lineageId };
  const text =
    `Restored the queues at commit ${restored.seq} to ${data}, and verified them.\n` +
    asTyped(`Serve them with: ctl queue serve --data ${data}\n`);
  out.write(json ? `${JSON.stringify(shown, null, 2)}\n` : text);
}
