import {
  backupExamples,
  backupOptions,
  restoreExamples,
  restoreOptions,
  verifyOptions,
  withCredentials,
} from '../base/common-options.js';
import type { Commands } from '../base/declared.js';
import { catalogCommands } from './catalog-commands.js';
import { recordCommands } from './record-commands.js';
import { transferCommands } from './transfer-commands.js';

/** The commands on the server. */
const adminCommands: Commands = {
  status: {
    summary: 'Show role, position, followers and collections',
    description: 'Show the role and position of the server, its followers and collections.',
    examples: [
      ['ctl db status', 'at a glance'],
      ['ctl db status --json', 'for scripts'],
    ],
    run: async () => (await import('./administration.js')).showStatus,
    isView: true,
  },
  backup: {
    summary: 'Back up the database while it is serving',
    description:
      'Write a snapshot of the whole database to a file and verify it before it gets its ' +
      'name. With --since, write an incremental backup: only what was committed after an ' +
      'earlier backup.',
    options: [
      ...backupOptions,
      [
        '--format <format>',
        'snapshot, to restore from, or ndjson, for other programs',
        { default: 'snapshot' },
      ],
      ['--collections <names>', 'Only these collections: people,orders'],
    ],
    examples: [
      ...backupExamples('ctl db'),
      ['ctl db backup --out dump.ndjson --format ndjson', 'one line of JSON per record'],
    ],
    run: async () => (await import('./backing-up.js')).backupTo,
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
    run: async () => (await import('./administration.js')).compactNow,
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
    run: async () => (await import('./administration.js')).promoteNow,
  },
};

const withKeysFile = withCredentials('keys', 'Keys file (default: from the settings)');

/** The commands that need no connection. */
export const localCommands: Commands = {
  restore: {
    summary: 'Restore a backup into a new database',
    description:
      'Restore a full backup and its incremental backups into a directory that is empty or ' +
      'missing. Everything is checked before anything is written, and verified at the end. ' +
      'With --to, leave out what was committed later. Needs no server; start one on the ' +
      'directory afterwards.',
    options: restoreOptions('Data directory to create'),
    examples: restoreExamples('ctl db'),
    run: async () => (await import('./restoring.js')).restoreTo,
    connect: null,
  },
  verify: {
    summary: 'Verify a database or a backup',
    description:
      'Verify every record, key, index entry and commit in a data directory that no server ' +
      'has open, or read a backup from end to end. Changes nothing.',
    options: verifyOptions,
    examples: [
      ['ctl db verify --data ./data', 'a database'],
      ['ctl db verify --backup monday.backup', 'a backup'],
    ],
    exitCodes: { 0: 'no problems found', 1: 'damage found, or failure' },
    run: async () => (await import('./verifying.js')).verifyEither,
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
        run: async () => (await import('./keys.js')).createKey,
      },
      list: {
        summary: 'List keys',
        description: 'List the keys of the file: their ids, what they may do, when they expire.',
        examples: [
          ['ctl db keys list --keys-file keys.yaml', 'as a table'],
          ['ctl db keys list --keys-file keys.yaml --json', 'for scripts'],
        ],
        isView: true,
        run: async () => (await import('./keys.js')).listKeys,
      },
      revoke: {
        summary: 'Revoke a key',
        description: 'Remove a key from the file. Calls in flight finish.',
        arguments: [['<id>', 'id of the key: its part before the first dot']],
        examples: [['ctl db keys revoke app --keys-file keys.yaml', 'by its id']],
        exitCodes: { 1: 'no such key, or failure' },
        run: async () => (await import('./keys.js')).revokeKey,
      },
    },
  },
};

/** Commands that need only a connection; the shell has them too. */
export const connectedCommands = (isShell: boolean): Commands => ({
  ...recordCommands(isShell),
  ...transferCommands,
  ...catalogCommands,
  ...adminCommands,
});
