import type { CtlCommand } from '../command.js';
import type { Tools } from '../tools.js';
import { queueApi, withQueue, type QueueFlags } from './api.js';
import type { AuditListFlags } from './audit-list.js';

export function addAudit(queue: CtlCommand, tools: Tools): void {
  const audit = queue
    .command('audit')
    .summary('Read the audit log and check that it is whole')
    .description(
      'Every redrive, purge, pause, resume, config write and deletion of a queue is recorded. ' +
        'Each record carries the hash of the one before it, so that none can be changed, removed ' +
        'or slipped in unseen.',
    )
    .example('ctl queue audit list --queue mail', 'who did what')
    .example('ctl queue audit verify', 'is it whole?');
  addAuditList(audit, tools);
  addVerify(audit, tools);
}

function addAuditList(audit: CtlCommand, tools: Tools): void {
  const list = audit
    .command('list')
    .summary('Show what was done, the latest first')
    .description('Shows the acts on queues of which you are admin, the latest first.')
    .option('--queue <name>', 'Only those on this queue')
    .option('--from <when>', 'Only those at this time or later, or within: 2h')
    .option('--to <when>', 'Only those before this time, or this long ago')
    .option('--limit <number>', 'How many at most (default: 50)')
    .example('ctl queue audit list --from 24h', 'the last day')
    .example('ctl queue audit list --queue mail --json', 'for scripts');
  withQueue(list).action(async (flags: QueueFlags & AuditListFlags) => {
    const { listAudit } = await import('./audit-list.js');
    await listAudit(queueApi(flags, tools), flags, tools);
  });
}

function addVerify(audit: CtlCommand, tools: Tools): void {
  const verify = audit
    .command('verify')
    .summary('Check the chain of the audit log')
    .description(
      'Computes every hash of the audit log again and tells the first record that does not fit. ' +
        'Asks a server, which takes a token that is admin of *, or opens a data directory that ' +
        'no server has open. Keep the last hash elsewhere: it shows when the end was cut off.',
    )
    .option('--data <dir>', 'Data directory to look into, instead of asking a server')
    .example('ctl queue audit verify', 'over the server')
    .example('ctl queue audit verify --data ./data', 'without one')
    .exitCode(0, 'the log is whole')
    .exitCode(1, 'a record is broken, or failure');
  withQueue(verify).action(async (flags: QueueFlags & { data?: string }) => {
    const { verifyAudit } = await import('./audit-verify.js');
    await verifyAudit(flags, tools);
  });
}
