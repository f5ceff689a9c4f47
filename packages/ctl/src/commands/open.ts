import type { CtlCommand } from '../base/command.js';
import { withDaemon } from '../daemon/api.js';
import type { OpenFlags } from '../open/open.js';
import type { Tools } from '../base/tools.js';

export function build(open: CtlCommand, tools: Tools): void {
  withDaemon(
    open
      .description(
        'Open the dashboard of the daemon in your browser with a login link that works ' +
          'once and expires after 5 minutes. Prints the link if no browser can be opened.',
      )
      .option('--print', 'Print the link and open nothing'),
  )
    .example('ctl open', 'in the browser of this machine')
    .example('ctl open --print', 'to open it yourself, for example through an SSH tunnel')
    .action(async (flags: OpenFlags) => {
      const { openDashboard } = await import('../open/open.js');
      await openDashboard(flags, tools);
    });
}
