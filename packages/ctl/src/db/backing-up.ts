import type { Flags } from '../base/tools.js';
import { createHash } from 'node:crypto';
import { rename, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Refusal, UsageError } from '@millrace/kit/errors';
import { humanBytes, humanDuration } from '@millrace/kit/units';
import { makePrivateDirectory } from '@millrace/kit/private-files';
import type { BackupHeader, BackupPart, BackupTrailer } from '@millrace/db';
import type { RemoteDatabase } from '@millrace/db/client';
import { listOf, wholeNumber } from '../base/arguments.js';
import type { ConnectedTools, ConnectionFlags } from './connection.js';
import { Progress, type Amount } from './progress.js';
import { counted } from '@millrace/contract/lists';
import { requireCollection } from './catalog.js';
import { requireOtherFile } from './service-backup.js';
import { writeWhole } from './atomic-file.js';

interface BackupOptions {
  /** Write a base backup into the directory `file`. */
  isBase: boolean;
  file: string;
  format: 'snapshot' | 'ndjson';
  collections: readonly string[];
  sinceFile: string | undefined;
  sinceSeq: number;
}

type BackupFlags = ConnectionFlags &
  Flags<'format collections sinceSeq since', 'base'> & { out: string };

function backupOptions(flags: BackupFlags): BackupOptions {
  const { format = 'snapshot' } = flags;
  if (format !== 'snapshot' && format !== 'ndjson') {
    throw new UsageError(`--format must be snapshot or ndjson, not "${format}".`);
  }
  if (flags.since !== undefined && flags.sinceSeq !== undefined) {
    throw new UsageError('Give --since or --since-seq, not both.');
  }
  const isPartial = format !== 'snapshot' || flags.collections !== undefined;
  const isIncremental = flags.since !== undefined || flags.sinceSeq !== undefined;
  if (flags.base && (isPartial || isIncremental)) {
    throw new UsageError(
      '--base is a full backup. Leave out --since, --since-seq, --format and --collections.',
    );
  }
  requireOtherFile(flags.since, flags.out);
  return {
    isBase: flags.base ?? false,
    file: flags.out,
    format,
    collections: listOf(flags.collections),
    sinceFile: flags.since,
    sinceSeq: wholeNumber(flags.sinceSeq, '--since-seq') ?? 0,
  };
}

/** Progress of a backup. */
interface Made {
  header?: BackupHeader;
  trailer?: BackupTrailer;
}

export async function backupTo(
  flags: BackupFlags,
  { connected, terminal, lifecycle }: ConnectedTools,
): Promise<void> {
  const options = backupOptions(flags);
  const database = await connected();
  const { baseBackupName, checkBackup, fileBytes, whyNotAfter } = await import('@millrace/db');
  const { format, collections, sinceFile } = options;
  if (options.isBase) await makeDirectory(options.file);
  // The name of a base backup has its commit number, which is not known yet.
  const written = options.isBase ? join(options.file, unnamedBase) : options.file;
  const base = sinceFile === undefined ? undefined : await checkBackup(sinceFile);
  // A misspelt name would make an empty backup.
  for (const name of collections) await requireCollection(database, name);
  const sinceSeq = base?.header.seq ?? options.sinceSeq;
  const progress = new Progress(terminal, 'Backed up');
  const of = terminal.err.isScreen && sinceSeq === 0 ? await countIn(database, collections) : 0;
  const made: Made = {};
  const parts = database.backup({
    format,
    collections,
    sinceSeq,
    // Counting the records on the way is only for a terminal.
    ...(terminal.err.isScreen && {
      onProgress: ({ records, bytes }) => progress.show({ ...amountOf(records, of), bytes }),
    }),
  });
  try {
    await writeWhole(written, fileBytes(checked(parts, made, base?.header)), {
      signal: lifecycle.interrupted,
      check: async (unfinished) => {
        if (format !== 'snapshot') return;
        const backup = await checkBackup(unfinished);
        const problem = base && whyNotAfter(base, backup);
        if (problem) throw new Refusal('BACKUP_REFUSED', `The backup ${problem}: take a full one.`);
      },
    });
  } finally {
    progress.end();
  }
  const { header, trailer } = made as Required<Made>;
  const { seq } = header;
  const file = options.isBase ? join(options.file, baseBackupName(seq)) : written;
  if (options.isBase) await rename(written, file);
  const noun = sinceSeq > 0 ? 'change' : 'record';
  const took = humanDuration(progress.elapsedMs);
  terminal.show(
    { file, format, seq, since_seq: sinceSeq, lineage_id: header.lineageId, ...trailer },
    `Backed up ${counted(trailer.records, noun)} (${humanBytes(trailer.bytes)}) at commit ${seq} ` +
      `to ${file} in ${took}.\n`,
  );
}

/** Records in the backup, about: others may write meanwhile. */
async function countIn(database: RemoteDatabase, only: readonly string[]): Promise<number> {
  const { collections } = await database.status({ includeCollections: true });
  return collections
    .filter(({ name }) => only.length === 0 || only.includes(name))
    .reduce((sum, { records }) => sum + records, 0);
}

function amountOf(records: number, of: number): Amount {
  return { records: of > 0 ? Math.min(records, of) : records, of };
}

const unnamedBase = 'unnamed.backup';

async function makeDirectory(path: string): Promise<void> {
  const found = await stat(path).catch(() => undefined);
  if (found?.isDirectory()) return;
  if (!found) {
    makePrivateDirectory(path);
    return;
  }
  throw new Refusal(
    'NOT_A_DIRECTORY',
    `${path} is not a directory. With --base, --out is the directory of the log archive.`,
  );
}

/** Passes chunks on and verifies them against the trailer. */
async function* checked(
  parts: AsyncIterable<BackupPart>,
  made: Made,
  base: BackupHeader | undefined,
): AsyncGenerator<BackupPart, void, void> {
  const hash = createHash('sha256');
  for await (const part of parts) {
    if (part.kind === 'header') {
      made.header = part.header;
      if (base && base.lineageId !== part.header.lineageId) {
        throw new Refusal(
          'LINEAGE_MISMATCH',
          'The base backup belongs to another database. Name a backup of this one.',
        );
      }
    } else if (part.kind === 'data') hash.update(part.bytes);
    else made.trailer = part.trailer;
    yield part;
  }
  if (!made.header || !made.trailer) {
    throw new Refusal('CORRUPT', 'The backup ended early; nothing was written. Run it again.');
  }
  if (hash.digest('hex') !== made.trailer.sha256) {
    throw new Refusal(
      'CORRUPT',
      'The backup was damaged in transit; nothing was written. Run it again.',
    );
  }
}
