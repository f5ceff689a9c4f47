import type { Commands } from '../base/declared.js';
import type { Tools } from '../base/tools.js';
import type { QueueFlags } from './api.js';

/** `backup`, `restore` and `verify`. */
export const backupCommands = (tools: Tools): Commands => ({
  backup: {
    summary: 'Back up all queues while the server runs',
    description:
      'Write a backup of one moment of the embedded store to a file: all queues with their tasks, ' +
      'schedules, jobs and the audit log. The file is checked before it gets its name. Needs a ' +
      'token with the grant *:admin. A queue on PostgreSQL is backed up with that database.',
    options: [['--out <file>', 'File to write', { required: true }]],
    examples: [['ctl queue backup --out monday.backup', 'of the server on this machine']],
    run: async (flags: QueueFlags & { out: string }) =>
      (await import('./backing-up.js')).backupQueues(flags, tools),
  },
  restore: {
    summary: 'Restore a backup of the queues',
    description:
      'Restore a backup into a data directory that has no queues yet. Everything is checked ' +
      'before anything is written, and verified at the end. Needs no server; start one on the ' +
      'directory afterwards.',
    options: [
      ['--from <file>', 'Backup file', { required: true }],
      ['--data <dir>', 'Data directory to restore into', { required: true }],
    ],
    examples: [
      ['ctl queue restore --from monday.backup --data ./restored', 'into a new directory'],
    ],
    run: async (flags: { from: string; data: string }) =>
      (await import('./backing-up.js')).restoreQueues(flags, tools),
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
    run: async (flags: { data?: string; backup?: string }) =>
      (await import('./backing-up.js')).verifyQueues(flags, tools),
    connect: null,
  },
});
