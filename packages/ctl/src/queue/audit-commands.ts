import type { CtlCommand } from '../base/command.js';
import type { Tools } from '../base/tools.js';
import { queueApi, withQueue, type QueueFlags } from './api.js';
import type { AuditListFlags } from './audit-list.js';

export function addAudit(queue: CtlCommand, tools: Tools): void {
  const audit = queue
    .command('audit')
    .summary('Read and verify the audit log')
    .description(
      'Read and verify the audit log. It records every redrive, purge, pause, resume, ' +
        'config write and deletion of a queue. Each record carries the hash of the one ' +
        'before it, so that a change, removal or insertion is detected.',
    )
    .example('ctl queue audit list --queue mail', 'who did what')
    .example('ctl queue audit verify', 'is it intact?');
  addAuditList(audit, tools);
  addVerify(audit, tools);
}

function addAuditList(audit: CtlCommand, tools: Tools): void {
  const list = audit
    .command('list')
    .summary('List audit records, newest first')
    .description('List the audit records of queues that you administer, newest first.')
    .option('--queue <name>', 'Only records of this queue')
    .option('--from <when>', 'Only records since this time, or in the last: 2h')
    .option('--to <when>', 'Only records before this time, or this long ago')
    .option('--limit <number>', 'Maximum number (default: 50)')
    .example('ctl queue audit list --from 24h', 'the last day')
    .example('ctl queue audit list --queue mail --json', 'for scripts');
  withQueue(list)
    .shown(tools)
    .action(async (flags: QueueFlags & AuditListFlags) => {
      const { listAudit } = await import('./audit-list.js');
      await listAudit(queueApi(flags, tools), flags, tools);
    });
}

function addVerify(audit: CtlCommand, tools: Tools): void {
  const verify = audit
    .command('verify')
    .summary('Verify the hash chain of the audit log')
    .description(
      'Compute every hash of the audit log again and report the first record that does not ' +
        'match. Reads from a server, which needs a token with the grant *:admin, or from a ' +
        'data directory that no server has open. Store the last hash elsewhere to detect a ' +
        'truncated log.',
    )
    .option('--data <dir>', 'Data directory to read, instead of a server')
    .example('ctl queue audit verify', 'from the server')
    .example('ctl queue audit verify --data ./data', 'from its data directory')
    .exitCode(0, 'the log is intact')
    .exitCode(1, 'a record is broken, or failure');
  withQueue(verify).action(async (flags: QueueFlags & { data?: string }) => {
    const { verifyAudit } = await import('./audit-verify.js');
    await verifyAudit(flags, tools);
  });
}
