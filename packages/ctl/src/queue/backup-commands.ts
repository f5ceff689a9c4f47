import {
  backupExamples,
  backupOptions,
  restoreExamples,
  restoreOptions,
  verifyOptions,
} from '../base/common-options.js';
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
    options: backupOptions,
    examples: backupExamples('ctl queue'),
    run: async () => (await import('./backing-up.js')).backupQueues,
  },
  restore: {
    summary: 'Restore a backup of the queues',
    description:
      'Restore a full backup and its incremental backups into a data directory that has no queues ' +
      'yet. Everything is checked before anything is written, and verified at the end. With --to, ' +
      'leave out what was committed later. Needs no server; start one on the directory afterwards.',
    options: restoreOptions('Data directory to restore into'),
    examples: restoreExamples('ctl queue'),
    run: async () => (await import('./backing-up.js')).restoreQueues,
    connect: null,
  },
  verify: {
    summary: 'Verify the stored queues or a backup',
    description:
      'Verify the embedded store in a data directory that no server has open, or read a backup ' +
      'from end to end. Changes nothing.',
    options: verifyOptions,
    examples: [
      ['ctl queue verify --data ./data', 'a data directory'],
      ['ctl queue verify --backup monday.backup', 'a backup'],
    ],
    exitCodes: { 0: 'no problems found', 1: 'damage found, or failure' },
    run: async () => (await import('./backing-up.js')).verifyQueues,
    connect: null,
  },
};
