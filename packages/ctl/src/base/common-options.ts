import type { CommandHelp } from '@millrace/contract/lists';
import type { Connect } from './declared.js';

/* Options and examples that commands of several servers share. */

type Options = NonNullable<CommandHelp['options']>;
type Examples = CommandHelp['examples'];

export const backupOptions: Options = [
  ['--out <file>', 'File to write; with --base, the archive directory', { required: true }],
  ['--base', 'Write a base backup into a log archive, for point-in-time restore'],
  ['--since <file>', 'Create an incremental backup on top of this backup'],
  ['--since-seq <number>', 'Create an incremental backup on top of a backup at this commit'],
];

export const backupExamples = (group: string): Examples => [
  [`${group} backup --out monday.backup`, 'a full backup'],
  [`${group} backup --out tuesday.backup --since monday.backup`, 'changes since then'],
  [`${group} backup --base --out ./archive`, 'a base backup for the log archive'],
];

export const restoreOptions = (dataHelp: string): Options => [
  [
    '--from <path>',
    'Log archive, or a backup file; repeat it for incremental backups, in order',
    { required: true, repeats: true },
  ],
  ['--to <target>', 'Commit number or RFC 3339 time to restore to, inclusive'],
  ['--data <dir>', dataHelp, { required: true }],
];

export const restoreExamples = (group: string): Examples => [
  [`${group} restore --from monday.backup --data ./restored`, 'a full backup'],
  [
    `${group} restore --from monday.backup --from tuesday.backup --data ./restored`,
    'with an incremental backup',
  ],
  [
    `${group} restore --from ./archive --to 2026-05-04T09:30:00Z --data ./restored`,
    'the state at a point in time',
  ],
];

export const verifyOptions: Options = [
  ['--data <dir>', 'Data directory to check'],
  ['--backup <file>', 'Backup file to check'],
];

/** Names a file of credentials, or where the settings of its server are. */
export const withCredentials =
  (name: string, help: string): Connect =>
  (command) =>
    command
      .option(`--${name}-file <file>`, help)
      .option('--config <file>', `Config file of the server, for its ${name}_file`)
      .option('--data <dir>', 'Data directory of a server on this machine');
