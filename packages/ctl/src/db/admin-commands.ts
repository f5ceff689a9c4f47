import type { BackupAsk } from './backing-up.js';
import type { CtlCommand } from '../command.js';
import type { Tools } from '../tools.js';
import { withConnection, withDatabase, type ConnectionFlags } from './connection.js';

interface BackupFlags extends ConnectionFlags {
  out: string;
  format?: string;
  collections?: string;
  sinceSeq?: string;
  since?: string;
}

export function addBackup(db: CtlCommand, tools: Tools): void {
  const command = db
    .command('backup')
    .summary('Back the database up while it serves')
    .description(
      'Writes one moment of the whole database to a file and reads it back before it takes its ' +
        'name. With --since only what was committed after an earlier backup: an increment.',
    )
    .requiredOption('--out <file>', 'File to write')
    .option('--since <file>', 'Make an increment on this backup')
    .option('--since-seq <number>', 'Make an increment on a backup at this commit')
    .option(
      '--format <format>',
      'snapshot, to restore from, or ndjson, to read elsewhere',
      'snapshot',
    )
    .option('--collections <names>', 'Only these collections: people,orders')
    .example('ctl db backup --out monday.backup', 'all of it')
    .example('ctl db backup --out tuesday.backup --since monday.backup', 'what has changed since')
    .example('ctl db backup --out dump.ndjson --format ndjson', 'a line of JSON for each record');
  withConnection(command, tools).action(async (flags: BackupFlags) => {
    const { backupTo } = await import('./backing-up.js');
    const ask = await backupAsk(flags);
    await withDatabase(tools, flags, (database) => backupTo(database, ask, tools));
  });
}

async function backupAsk(flags: BackupFlags): Promise<BackupAsk> {
  const [{ listOf, wholeNumber }, { UsageError }] = await Promise.all([
    import('./arguments.js'),
    import('@millrace/kit/errors'),
  ]);
  const { format = 'snapshot' } = flags;
  if (format !== 'snapshot' && format !== 'ndjson') {
    throw new UsageError(`--format must be snapshot or ndjson, not "${format}".`);
  }
  if (flags.since !== undefined && flags.sinceSeq !== undefined) {
    throw new UsageError('Give --since or --since-seq, not both.');
  }
  return {
    file: flags.out,
    format,
    collections: listOf(flags.collections),
    sinceFile: flags.since,
    sinceSeq: wholeNumber(flags.sinceSeq, '--since-seq') ?? 0,
  };
}

export function addRestore(db: CtlCommand, tools: Tools): void {
  db.command('restore')
    .summary('Make a database of a backup')
    .description(
      'Makes a database of a full backup and its increments, in a directory that is empty or not ' +
        'there. Everything is checked before anything is written, and verified at the end. No ' +
        'server is needed; start one on the directory afterwards.',
    )
    .requiredOption(
      '--from <file>',
      'Backup to restore; repeat it for increments, in order',
      collect,
    )
    .requiredOption('--data <dir>', 'Data directory to make')
    .example('ctl db restore --from monday.backup --data ./restored', 'a full backup')
    .example(
      'ctl db restore --from monday.backup --from tuesday.backup --data ./restored',
      'with an increment',
    )
    .action(async (flags: { from: string[]; data: string }) => {
      const { restoreTo } = await import('./restoring.js');
      await restoreTo(flags.from, flags.data, tools);
    });
}

export function addVerify(db: CtlCommand, tools: Tools): void {
  db.command('verify')
    .summary('Check that a database or a backup is whole')
    .description(
      'Looks at everything in a data directory that no server has open: every record, key, index ' +
        'entry and commit. Or reads a backup from end to end. Changes nothing.',
    )
    .option('--data <dir>', 'Data directory to check')
    .option('--backup <file>', 'Backup file to check')
    .example('ctl db verify --data ./data', 'a database')
    .example('ctl db verify --backup monday.backup', 'a backup')
    .exitCode(0, 'all is well')
    .exitCode(1, 'something is damaged, or failure')
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
    .description('Trims the change log to its limits and rewrites the data file, while serving.')
    .option('--trim-before <seq>', 'Trim the log before this commit, however young it is')
    .option('--dry-run', 'Change nothing; only tell what would come of it')
    .example('ctl db compact --dry-run', 'what would it bring?')
    .example('ctl db compact', 'do it');
  withConnection(command, tools).action(
    async (flags: ConnectionFlags & { trimBefore?: string; dryRun?: boolean }) => {
      const [{ compactNow }, { wholeNumber }] = await Promise.all([
        import('./administration.js'),
        import('./arguments.js'),
      ]);
      const trimBeforeSeq = wholeNumber(flags.trimBefore, '--trim-before');
      const ask = { trimBeforeSeq, dryRun: flags.dryRun ?? false };
      await withDatabase(tools, flags, (database) => compactNow(database, ask, tools));
    },
  );
}

export function addPromote(db: CtlCommand, tools: Tools): void {
  const command = db
    .command('promote')
    .summary('Make a follower the leader')
    .description(
      'Makes the follower that answers the leader. Refused while it lacks commits, unless --force. ' +
        'A partitioned old leader without min_acks goes on accepting writes until it hears of it.',
    )
    .option('--force', 'Promote although commits of the old leader are missing here')
    .option('--max-lag <number>', 'Promote with up to this many commits missing')
    .example('ctl db promote --url grpc://10.0.0.2:5433', 'the follower takes over')
    .example('ctl db promote --force', 'the old leader is gone for good');
  withConnection(command, tools).action(
    async (flags: ConnectionFlags & { force?: boolean; maxLag?: string }) => {
      const [{ promoteNow }, { wholeNumber }] = await Promise.all([
        import('./administration.js'),
        import('./arguments.js'),
      ]);
      const ask = { force: flags.force ?? false, maxLag: wholeNumber(flags.maxLag, '--max-lag') };
      await withDatabase(tools, flags, (database) => promoteNow(database, ask, tools));
    },
  );
}

export function addStatus(db: CtlCommand, tools: Tools): void {
  const command = db
    .command('status')
    .summary('Show role, position, followers and collections')
    .description('Shows what the server is and where it stands, its followers and collections.')
    .example('ctl db status', 'at a glance')
    .example('ctl db status --json', 'for scripts');
  withConnection(command, tools).action(async (flags: ConnectionFlags) => {
    const { showStatus } = await import('./administration.js');
    await withDatabase(tools, flags, (database) => showStatus(database, tools));
  });
}

function collect(value: string, before: string[] | undefined): string[] {
  return [...(before ?? []), value];
}
