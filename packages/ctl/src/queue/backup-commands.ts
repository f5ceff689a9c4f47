import type { Commands } from '../base/declared.js';

/** `backup`, `restore` and `verify`. */
export const backupCommands: Commands = {
  backup: {
    summary: 'Back up all queues while the server runs',
    description:
      'Write a backup of one moment of the embedded store to a file: all queues with their tasks, ' +
      'schedules, jobs and the audit log. The file is checked before it gets its name. With ' +
      '--since, write an incremental backup: only what was committed after an earlier backup. ' +
      'Needs a token with the grant *:admin. A queue on PostgreSQL is backed up with that database.',
    options: [
      ['--out <file>', 'File to write; with --base, the archive directory', { required: true }],
      ['--base', 'Write a base backup into a log archive, for point-in-time restore'],
      ['--since <file>', 'Create an incremental backup on top of this backup'],
      ['--since-seq <number>', 'Create an incremental backup on top of a backup at this commit'],
    ],
    examples: [
      ['ctl queue backup --out monday.backup', 'a full backup'],
      ['ctl queue backup --out tuesday.backup --since monday.backup', 'changes since then'],
      ['ctl queue backup --base --out ./archive', 'a base backup for the log archive'],
    ],
    run: async () => (await import('./backing-up.js')).backupQueues,
  },
  restore: {
    summary: 'Restore a backup of the queues',
    description:
      'Restore a full backup and its incremental backups into a data directory that has no queues ' +
      'yet. Everything is checked before anything is written, and verified at the end. With --to, ' +
      'leave out what was committed later. Needs no server; start one on the directory afterwards.',
    options: [
      [
        '--from <path>',
        'Log archive, or a backup file; repeat it for incremental backups, in order',
        { required: true, repeats: true },
      ],
      ['--to <target>', 'Commit number or RFC 3339 time to restore to, inclusive'],
      ['--data <dir>', 'Data directory to restore into', { required: true }],
    ],
    examples: [
      ['ctl queue restore --from monday.backup --data ./restored', 'a full backup'],
      [
        'ctl queue restore --from monday.backup --from tuesday.backup --data ./restored',
        'with an incremental backup',
      ],
      [
        'ctl queue restore --from ./archive --to 2026-05-04T09:30:00Z --data ./restored',
        'the state at a point in time',
      ],
    ],
    run: async () => (await import('./backing-up.js')).restoreQueues,
    connect: null,
  },
  verify: {
    summary: 'Verify the stored queues or a backup',
    description:
      'Verify the embedded store in a data directory that no server has open, or read a backup ' +
      'from end to end. Changes nothing.',
    options: [
      ['--data <dir>', 'Data directory to check'],
      ['--backup <file>', 'Backup file to check'],
    ],
    examples: [
      ['ctl queue verify --data ./data', 'a data directory'],
      ['ctl queue verify --backup monday.backup', 'a backup'],
    ],
    exitCodes: { 0: 'no problems found', 1: 'damage found, or failure' },
    run: async () => (await import('./backing-up.js')).verifyQueues,
    connect: null,
  },
};
