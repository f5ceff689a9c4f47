import { existsSync, realpathSync } from 'node:fs';
import { Refusal, UsageError } from '@millrace/kit/errors';
import { humanBytes } from '@millrace/kit/units';
import type { CheckedBackup } from '@millrace/db';
import { harmless } from '../base/exchange.js';
import type { Tools } from '../base/tools.js';
import { writeWhole } from './atomic-file.js';

/** A running queue or daemon, which sends backups of its database. */
interface BackupSource {
  /** URL of the operation. */
  url: string;
  token: string | undefined;
}

/** The backup to continue: a file, or the commit that it is at. */
export type Base = CheckedBackup | number | undefined;

/** An increment in the place of its base would leave nothing to restore. */
export function requireOtherFile(since: string | undefined, out: string): void {
  if (since === undefined || !existsSync(since) || !existsSync(out)) return;
  if (realpathSync(since) !== realpathSync(out)) return;
  throw new UsageError(
    '--out is the backup that --since names: an increment is restored together with it. Give ' +
      'another file.',
  );
}

/** Reads the backup that an increment continues. */
export async function readBase(file: string): Promise<CheckedBackup> {
  const { checkBackup } = await import('@millrace/db');
  const base = await checkBackup(file);
  if (base.header.formatVersion >= 2) return base;
  throw new Refusal(
    'BACKUP_REFUSED',
    `${file} is of an earlier Millrace and cannot be continued: take a full backup.`,
  );
}

/** Writes a backup, or an increment on `base`, to a file, which is checked before it gets its name. */
export async function saveBackup(
  { url, token }: BackupSource,
  file: string,
  base: Base,
  { lifecycle }: Pick<Tools, 'lifecycle'>,
): Promise<CheckedBackup> {
  const sinceSeq = typeof base === 'number' ? base : base?.header.seq;
  const signal = lifecycle.interrupted;
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const query = sinceSeq === undefined ? '' : `?since_seq=${sinceSeq}`;
  const response = await fetch(`${url}${query}`, { headers, signal });
  if (!response.ok || !response.body) {
    const { code = 'UNAVAILABLE', detail = '' } = (await response.json()) as Record<string, string>;
    throw new Refusal(code, harmless(detail));
  }
  const { checkBackup, whyNotAfter } = await import('@millrace/db');
  let made: CheckedBackup | undefined;
  const check = async (unfinished: string) => {
    made = await checkBackup(unfinished);
    if (typeof base !== 'object') return;
    if (base.header.lineageId !== made.header.lineageId) {
      throw new Refusal(
        'LINEAGE_MISMATCH',
        'The base backup belongs to another database. Name a backup of this one.',
      );
    }
    const problem = whyNotAfter(base, made);
    if (problem) throw new Refusal('BACKUP_REFUSED', `The backup ${problem}: take a full one.`);
  };
  await writeWhole(file, response.body, { signal, check });
  return made!;
}

/** Prints what was backed up. */
export function showBackup(
  file: string,
  { header, trailer }: CheckedBackup,
  { terminal }: Pick<Tools, 'terminal'>,
): void {
  const { seq, sinceSeq, createdAt, lineageId } = header;
  const shown = { file, seq, since_seq: sinceSeq, created_at: createdAt, lineage_id: lineageId };
  const what = sinceSeq === 0 ? 'everything' : `what was committed after ${sinceSeq}`;
  const text = `Backed up ${what} (${humanBytes(trailer.bytes)}) at commit ${seq} to ${file}.\n`;
  terminal.show({ ...shown, ...trailer }, text);
}
