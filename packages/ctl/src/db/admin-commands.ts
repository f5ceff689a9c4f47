import type { BackupOptions } from './backing-up.js';
import { addCommands, type Commands, type Connect } from '../base/declared.js';
import type { CtlCommand } from '../base/command.js';
import {
  withConnection,
  withDatabase,
  type ConnectionFlags,
  type DatabaseTools,
} from './connection.js';
import type { CreateKeyFlags, KeysFileFlags } from './keys.js';
import { catalogCommands } from './catalog-commands.js';
import { recordCommands } from './record-commands.js';
import { transferCommands } from './transfer-commands.js';

interface BackupFlags extends ConnectionFlags {
  out: string;
  format?: string;
  collections?: string;
  sinceSeq?: string;
  since?: string;
  base?: boolean;
}

/** The commands on the server. */
const adminCommands = (tools: DatabaseTools): Commands => ({
  status: {
    summary: 'Show role, position, followers and collections',
    description: 'Show the role and position of the server, its followers and collections.',
    examples: [
      ['ctl db status', 'at a glance'],
      ['ctl db status --json', 'for scripts'],
    ],
    run: async (flags: ConnectionFlags) => {
      const { showStatus } = await import('./administration.js');
      await withDatabase(tools, flags, (database) => showStatus(database, tools));
    },
    isView: true,
  },
  backup: {
    summary: 'Back up the database while it is serving',
    description:
      'Write a snapshot of the whole database to a file and verify it before it gets its ' +
      'name. With --since, write an incremental backup: only what was committed after an ' +
      'earlier backup.',
    options: [
      ['--out <file>', 'File to write; with --base, the archive directory', { required: true }],
      ['--base', 'Write a base backup into a log archive, for point-in-time restore'],
      ['--since <file>', 'Create an incremental backup on top of this backup'],
      ['--since-seq <number>', 'Create an incremental backup on top of a backup at this commit'],
      [
        '--format <format>',
        'snapshot, to restore from, or ndjson, for other programs',
        { default: 'snapshot' },
      ],
      ['--collections <names>', 'Only these collections: people,orders'],
    ],
    examples: [
      ['ctl db backup --out monday.backup', 'a full backup'],
      ['ctl db backup --out tuesday.backup --since monday.backup', 'changes since then'],
      ['ctl db backup --base --out ./archive', 'a base backup for the log archive'],
      ['ctl db backup --out dump.ndjson --format ndjson', 'one line of JSON per record'],
    ],
    run: async (flags: BackupFlags) => {
      const { backupTo } = await import('./backing-up.js');
      const options = await backupOptions(flags);
      await withDatabase(tools, flags, (database) => backupTo(database, options, tools));
    },
  },
  compact: {
    summary: 'Trim the change log and rewrite the data file',
    description:
      'Trim the change log to its retention limits and rewrite the data file, while serving.',
    options: [
      ['--trim-before <seq>', 'Trim the log before this commit, whatever its age'],
      ['--dry-run', 'Dry run: show the effect and change nothing'],
    ],
    examples: [
      ['ctl db compact --dry-run', 'what would it save?'],
      ['ctl db compact', 'do it'],
    ],
    run: async (flags: ConnectionFlags & { trimBefore?: string; dryRun?: boolean }) => {
      const [{ compactNow }, { wholeNumber }] = await Promise.all([
        import('./administration.js'),
        import('../base/arguments.js'),
      ]);
      const trimBeforeSeq = wholeNumber(flags.trimBefore, '--trim-before');
      const options = { trimBeforeSeq, dryRun: flags.dryRun ?? false };
      await withDatabase(tools, flags, (database) => compactNow(database, options, tools));
    },
  },
  promote: {
    summary: 'Promote a follower to leader',
    description:
      'Promote the follower that answers to leader. Fails while it lacks commits, unless ' +
      '--force is given. A partitioned old leader without min_acks keeps accepting writes ' +
      'until it learns of the new leader.',
    options: [
      ['--force', 'Promote even if commits of the old leader are missing'],
      ['--max-lag <number>', 'Promote with up to this many commits missing'],
    ],
    examples: [
      ['ctl db promote --url grpc://10.0.0.2:5433', 'the follower takes over'],
      ['ctl db promote --force', 'the old leader is lost'],
    ],
    run: async (flags: ConnectionFlags & { force?: boolean; maxLag?: string }) => {
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
  },
});

const withKeysFile: Connect = (command) =>
  command
    .option('--keys-file <file>', 'Keys file (default: from the settings)')
    .option('--config <file>', 'Config file of the server, for its keys_file');

/** The commands that need no connection. */
const localCommands = (tools: DatabaseTools): Commands => ({
  restore: {
    summary: 'Restore a backup into a new database',
    description:
      'Restore a full backup and its incremental backups into a directory that is empty or ' +
      'missing. Everything is checked before anything is written, and verified at the end. ' +
      'With --to, leave out what was committed later. Needs no server; start one on the ' +
      'directory afterwards.',
    options: [
      [
        '--from <path>',
        'Log archive, or a backup file; repeat it for incremental backups, in order',
        { required: true, repeats: true },
      ],
      ['--to <target>', 'Commit number or RFC 3339 time to restore to, inclusive'],
      ['--data <dir>', 'Data directory to create', { required: true }],
    ],
    examples: [
      ['ctl db restore --from monday.backup --data ./restored', 'a full backup'],
      [
        'ctl db restore --from monday.backup --from tuesday.backup --data ./restored',
        'with an incremental backup',
      ],
      [
        'ctl db restore --from ./archive --to 2026-05-04T09:30:00Z --data ./restored',
        'the state at a point in time',
      ],
    ],
    run: async (flags: { from: string[]; data: string; to?: string }) => {
      const { restoreTo, targetOf } = await import('./restoring.js');
      await restoreTo(flags.from, flags.data, targetOf(flags.to), tools);
    },
    connect: null,
  },
  verify: {
    summary: 'Verify a database or a backup',
    description:
      'Verify every record, key, index entry and commit in a data directory that no server ' +
      'has open, or read a backup from end to end. Changes nothing.',
    options: [
      ['--data <dir>', 'Data directory to check'],
      ['--backup <file>', 'Backup file to check'],
    ],
    examples: [
      ['ctl db verify --data ./data', 'a database'],
      ['ctl db verify --backup monday.backup', 'a backup'],
    ],
    exitCodes: { 0: 'no problems found', 1: 'damage found, or failure' },
    run: async (flags: { data?: string; backup?: string }) => {
      const { verifyBackup, verifyData } = await import('./verifying.js');
      const { UsageError } = await import('@millrace/kit/errors');
      if (flags.data !== undefined && flags.backup === undefined) {
        await verifyData(flags.data, tools);
      } else if (flags.backup !== undefined && flags.data === undefined) {
        await verifyBackup(flags.backup, tools);
      } else throw new UsageError('Name what to check: --data DIR or --backup FILE.');
    },
    connect: null,
  },
  keys: {
    connect: withKeysFile,
    summary: 'Manage API keys: create, list, revoke',
    description:
      'Edit the keys file of a server. A running server reloads it within seconds, or at ' +
      'once on SIGHUP.',
    examples: [
      ["ctl db keys create --keys-file keys.yaml --scope '*:write'", 'a key for an app'],
      ['ctl db keys list --keys-file keys.yaml', 'who has access'],
      ['ctl db keys revoke app --keys-file keys.yaml', 'revoke it'],
    ],
    commands: {
      create: {
        summary: 'Create a key and show it once',
        description:
          'Create a key, add it to the keys file and print it. The file contains only a ' +
          'hash, so the key cannot be shown again.',
        options: [
          ['--id <id>', 'Id of the key, not secret (default: generated)'],
          [
            '--scope <collections:access...>',
            'What it may do: people:read, orders.*:write, *:admin (admin includes write ' +
              'includes read)',
            { required: true },
          ],
          ['--expires <when>', 'When it expires: after 90d, or at 2030-01-31T00:00:00Z'],
        ],
        examples: [
          ["ctl db keys create --keys-file keys.yaml --scope '*:admin'", 'may do everything'],
          [
            "ctl db keys create --config db.yaml --id app --scope 'o.*:write' people:read",
            'two scopes, in the keys file of the settings',
          ],
        ],
        run: async (flags: CreateKeyFlags) => (await import('./keys.js')).createKey(flags, tools),
      },
      list: {
        summary: 'List keys',
        description: 'List the keys of the file: their ids, what they may do, when they expire.',
        examples: [
          ['ctl db keys list --keys-file keys.yaml', 'as a table'],
          ['ctl db keys list --keys-file keys.yaml --json', 'for scripts'],
        ],
        isView: true,
        run: async (flags: KeysFileFlags) => (await import('./keys.js')).listKeys(flags, tools),
      },
      revoke: {
        summary: 'Revoke a key',
        description: 'Remove a key from the file. Calls in flight finish.',
        arguments: [['<id>', 'id of the key: its part before the first dot']],
        examples: [['ctl db keys revoke app --keys-file keys.yaml', 'by its id']],
        exitCodes: { 1: 'no such key, or failure' },
        run: async (id: string, flags: KeysFileFlags) =>
          (await import('./keys.js')).revokeKey(id, flags, tools),
      },
    },
  },
});

/** Commands that need only a connection; the shell has them too. */
export function addShellCommands(db: CtlCommand, tools: DatabaseTools): void {
  const connect: Connect = (command) => withConnection(command, tools);
  // The shell shows everything once.
  const server = { connect, hasViews: tools.database === undefined };
  const commands = {
    ...recordCommands(tools),
    ...transferCommands(tools),
    ...catalogCommands(tools),
    ...adminCommands(tools),
  };
  addCommands(db, commands, tools, server);
}

/** Every command of `ctl db` but `serve`. */
export function addDatabaseCommands(db: CtlCommand, tools: DatabaseTools): void {
  addShellCommands(db, tools);
  const connect: Connect = (command) => withConnection(command, tools);
  addCommands(db, localCommands(tools), tools, { connect });
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
