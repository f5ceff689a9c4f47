import type { CtlCommand } from '../base/command.js';
import { withDaemon, type DaemonFlags } from '../daemon/api.js';
import type { InboxFlags } from '../inbox/inbox.js';
import type { Tools } from '../base/tools.js';
import { keepFlagsApart } from '../usage/own-flags.js';

export function build(inbox: CtlCommand, tools: Tools): void {
  const list = async (flags: InboxFlags) => {
    const { showInbox } = await import('../inbox/inbox.js');
    await showInbox(flags, tools);
  };
  withList(
    keepFlagsApart(inbox).description(
      'Show notifications of the daemon, newest first: agents that wait or have failed, ' +
        'contexts that are full, branches whose checks fail. A star marks unread ones.',
    ),
  )
    .example('ctl inbox', 'everything')
    .example('ctl inbox --unread', 'only unread ones')
    .example('ctl inbox read --all', 'mark all as read')
    .shown(tools)
    .action(list);
  withList(
    inbox
      .command('list')
      .alias('ls')
      .summary('List notifications, like `ctl inbox`')
      .description('List notifications, newest first. A star marks unread ones.'),
  )
    .example('ctl inbox list --unread --json', 'for scripts')
    .shown(tools)
    // Commander assigns flags that the group also has to the group.
    .action((_flags: InboxFlags, self: CtlCommand) => list(self.optsWithGlobals<InboxFlags>()));
  addRead(inbox, tools);
}

function withList(command: CtlCommand): CtlCommand {
  return withDaemon(
    command
      .option('--unread', 'Only unread notifications')
      .option('--limit <number>', 'Maximum number, 1 to 1000 (default: 200)'),
  );
}

function addRead(inbox: CtlCommand, tools: Tools): void {
  withDaemon(
    inbox
      .command('read')
      .summary('Mark notifications as read')
      .description('Mark notifications as read.')
      .argument('[notes...]', 'ids or id prefixes')
      .option('--all', 'All unread notifications')
      .example('ctl inbox read 01K9ZS3M', 'one')
      .example('ctl inbox read --all', 'all of them')
      .exitCode(1, 'no such notification, or failure'),
  ).action(async (ids: string[], _flags: DaemonFlags, self: CtlCommand) => {
    const { readNotesAway } = await import('../inbox/inbox.js');
    const flags = self.optsWithGlobals<DaemonFlags & { all?: boolean }>();
    await readNotesAway(ids, flags, tools);
  });
}
