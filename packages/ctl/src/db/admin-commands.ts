import type { BackupOptions } from './backing-up.js';
import type { CtlCommand } from '../base/command.js';
import type { Tools } from '../base/tools.js';
import { withConnection, withDatabase, withView, type ConnectionFlags } from './connection.js';

interface BackupFlags extends ConnectionFlags {
  out: string;
  format?: string;
  collections?: string;
  sinceSeq?: string;
  since?: string;
  base?: boolean;
}

export function addBackup(db: CtlCommand, tools: Tools): void {
  const command = db
    .command('backup')
    .summary('Back up the database while it is serving')
    .description(
      'Write a snapshot of the whole database to a file and verify it before it gets its ' +
        'name. With --since, write an incremental backup: only what was committed after an ' +
        'earlier backup.',
    )
    .requiredOption('--out <file>', 'File to write; with --base, the archive directory')
    .option('--base', 'Write a base backup into a log archive, for point-in-time restore')
    .option('--since <file>', 'Create an incremental backup on top of this backup')
    .option(
      '--since-seq <number>',
      'Create an incremental backup on top of a backup at this commit',
    )
    .option(
      '--format <format>',
      'snapshot, to restore from, or ndjson, for other programs',
      'snapshot',
    )
    .option('--collections <names>', 'Only these collections: people,orders')
    .example('ctl db backup --out monday.backup', 'a full backup')
    .example('ctl db backup --out tuesday.backup --since monday.backup', 'changes since then')
    .example('ctl db backup --base --out ./archive', 'a base backup for the log archive')
    .example('ctl db backup --out dump.ndjson --format ndjson', 'one line of JSON per record');
  withConnection(command, tools).action(async (flags: BackupFlags) => {
    const { backupTo } = await import('./backing-up.js');
    const options = await backupOptions(flags);
    await withDatabase(tools, flags, (database) => backupTo(database, options, tools));
  });
}

async function backupOptions(flags: BackupFlags): Promise<BackupOptions> {
  const [{ listOf, wholeNumber }, { UsageError }] = await Promise.all([
    import('../base/arguments.js'),
    import('@millrace/kit/errors'),
  ]);
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
  return {
    isBase: flags.base ?? false,
    file: flags.out,
    format,
    collections: listOf(flags.collections),
    sinceFile: flags.since,
    sinceSeq: wholeNumber(flags.sinceSeq, '--since-seq') ?? 0,
  };
}

export function addRestore(db: CtlCommand, tools: Tools): void {
  db.command('restore')
    .summary('Restore a backup into a new database')
    .description(
      'Restore a full backup and its incremental backups into a directory that is empty or ' +
        'missing. Everything is checked before anything is written, and verified at the end. ' +
        'With --to, leave out what was committed later. Needs no server; start one on the ' +
        'directory afterwards.',
    )
    .requiredOption(
      '--from <path>',
      'Log archive, or a backup file; repeat it for incremental backups, in order',
      collect,
    )
    .option('--to <target>', 'Commit number or RFC 3339 time to restore to, inclusive')
    .requiredOption('--data <dir>', 'Data directory to create')
    .example('ctl db restore --from monday.backup --data ./restored', 'a full backup')
    .example(
      'ctl db restore --from monday.backup --from tuesday.backup --data ./restored',
      'with an incremental backup',
    )
    .example(
      'ctl db restore --from ./archive --to 2026-05-04T09:30:00Z --data ./restored',
      'the state at a point in time',
    )
    .action(async (flags: { from: string[]; data: string; to?: string }) => {
      const { restoreTo, targetOf } = await import('./restoring.js');
      await restoreTo(flags.from, flags.data, targetOf(flags.to), tools);
    });
}

export function addVerify(db: CtlCommand, tools: Tools): void {
  db.command('verify')
    .summary('Verify a database or a backup')
    .description(
      'Verify every record, key, index entry and commit in a data directory that no server ' +
        'has open, or read a backup from end to end. Changes nothing.',
    )
    .option('--data <dir>', 'Data directory to check')
    .option('--backup <file>', 'Backup file to check')
    .example('ctl db verify --data ./data', 'a database')
    .example('ctl db verify --backup monday.backup', 'a backup')
    .exitCode(0, 'no problems found')
    .exitCode(1, 'damage found, or failure')
    .action(async (flags: { data?: string; backup?: string }) => {
      const { verifyBackup, verifyData } = await import('./verifying.js');
      const { UsageError } = await import('@millrace/kit/errors');
      if (flags.data !== undefined && flags.backup === undefined) {
        await verifyData(flags.data, tools);
      } else if (flags.backup !== undefined && flags.data === undefined) {
        await verifyBackup(flags.backup, tools);
      } else throw new UsageError('Name what to check: --data DIR or --backup FILE.');
    });
}

export function addCompact(db: CtlCommand, tools: Tools): void {
  const command = db
    .command('compact')
    .summary('Trim the change log and rewrite the data file')
    .description(
      'Trim the change log to its retention limits and rewrite the data file, while serving.',
    )
    .option('--trim-before <seq>', 'Trim the log before this commit, whatever its age')
    .option('--dry-run', 'Dry run: show the effect and change nothing')
    .example('ctl db compact --dry-run', 'what would it save?')
    .example('ctl db compact', 'do it');
  withConnection(command, tools).action(
    async (flags: ConnectionFlags & { trimBefore?: string; dryRun?: boolean }) => {
      const [{ compactNow }, { wholeNumber }] = await Promise.all([
        import('./administration.js'),
        import('../base/arguments.js'),
      ]);
      const trimBeforeSeq = wholeNumber(flags.trimBefore, '--trim-before');
      const options = { trimBeforeSeq, dryRun: flags.dryRun ?? false };
      await withDatabase(tools, flags, (database) => compactNow(database, options, tools));
    },
  );
}

export function addPromote(db: CtlCommand, tools: Tools): void {
  const command = db
    .command('promote')
    .summary('Promote a follower to leader')
    .description(
      'Promote the follower that answers to leader. Fails while it lacks commits, unless ' +
        '--force is given. A partitioned old leader without min_acks keeps accepting writes ' +
        'until it learns of the new leader.',
    )
    .option('--force', 'Promote even if commits of the old leader are missing')
    .option('--max-lag <number>', 'Promote with up to this many commits missing')
    .example('ctl db promote --url grpc://10.0.0.2:5433', 'the follower takes over')
    .example('ctl db promote --force', 'the old leader is lost');
  withConnection(command, tools).action(
    async (flags: ConnectionFlags & { force?: boolean; maxLag?: string }) => {
      const [{ promoteNow }, { wholeNumber }] = await Promise.all([
        import('./administration.js'),
        import('../base/arguments.js'),
      ]);
      const options = {
        force: flags.force ?? false,
        maxLag: wholeNumber(flags.maxLag, '--max-lag'),
      };
      await withDatabase(tools, flags, (database) => promoteNow(database, options, tools));
    },
  );
}

export function addStatus(db: CtlCommand, tools: Tools): void {
  const command = db
    .command('status')
    .summary('Show role, position, followers and collections')
    .description('Show the role and position of the server, its followers and collections.')
    .example('ctl db status', 'at a glance')
    .example('ctl db status --json', 'for scripts');
  withView(command, tools).action(async (flags: ConnectionFlags) => {
    const { showStatus } = await import('./administration.js');
    await withDatabase(tools, flags, (database) => showStatus(database, tools));
  });
}

function collect(value: string, before: string[] | undefined): string[] {
  return [...(before ?? []), value];
}
