import type { CtlCommand } from '../command.js';
import { addInstall, addStatus } from '../daemon/daemon-commands.js';
import { addServe } from '../daemon/serve-command.js';
import { addToken } from '../daemon/token-commands.js';
import type { Tools } from '../tools.js';

export async function build(daemon: CtlCommand, tools: Tools): Promise<void> {
  daemon
    .description(
      'Runs the daemon and manages its token. Other commands find it by --url, by MILLRACE_URL, ' +
        'or by the address that it leaves in its data directory.',
    )
    .example('ctl daemon serve', 'run it here')
    .example('ctl daemon status', 'see whether it runs')
    .example('ctl daemon install', 'run it from now on');
  await addServe(daemon, tools);
  addStatus(daemon, tools);
  addToken(daemon, tools);
  addInstall(daemon, tools);
}
