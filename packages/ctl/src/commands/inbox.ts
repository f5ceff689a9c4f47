import type { CtlCommand } from '../command.js';
import { withDaemon, type DaemonFlags } from '../daemon/api.js';
import type { InboxFlags } from '../inbox/inbox.js';
import type { Tools } from '../tools.js';
import { keepFlagsApart } from '../usage/own-flags.js';

export function build(inbox: CtlCommand, tools: Tools): void {
  const list = async (flags: InboxFlags) => {
    const { showInbox } = await import('../inbox/inbox.js');
    await showInbox(flags, tools);
  };
  withList(
    keepFlagsApart(inbox).description(
      'Shows what the daemon has for you, newest first: agents that wait or have failed, ' +
        'contexts that are full, branches whose checks fail. A star marks what is unread.',
    ),
  )
    .example('ctl inbox', 'everything')
    .example('ctl inbox --unread', 'what is new')
    .example('ctl inbox read --all', 'and away')
    .action(list);
  withList(
    inbox
      .command('list')
      .alias('ls')
      .summary('Show the notes, as `ctl inbox` does')
      .description('Shows the notes, newest first. A star marks what is unread.'),
  )
    .example('ctl inbox list --unread --json', 'for scripts')
    // Flags that the group knows too end up there.
    .action((_flags: InboxFlags, self: CtlCommand) => list(self.optsWithGlobals<InboxFlags>()));
  addRead(inbox, tools);
}

function withList(command: CtlCommand): CtlCommand {
  return withDaemon(
    command
      .option('--unread', 'Only what is not read')
      .option('--limit <number>', 'So many at most, 1 to 1000 (default: 200)'),
  );
}

function addRead(inbox: CtlCommand, tools: Tools): void {
  withDaemon(
    inbox
      .command('read')
      .summary('Mark notes as read')
      .description('Marks notes as read.')
      .argument('[notes...]', 'their ids, or the beginnings of them')
      .option('--all', 'All that are unread')
      .example('ctl inbox read 01K9ZS3M', 'one')
      .example('ctl inbox read --all', 'all of them')
      .exitCode(1, 'no such note, or failure'),
  ).action(async (ids: string[], _flags: DaemonFlags, self: CtlCommand) => {
    const { readNotesAway } = await import('../inbox/inbox.js');
    const flags = self.optsWithGlobals<DaemonFlags & { all?: boolean }>();
    await readNotesAway(ids, flags, tools);
  });
}
