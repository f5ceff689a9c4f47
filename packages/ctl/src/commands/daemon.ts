import type { CtlCommand } from '../base/command.js';
import { addInstall, addStatus } from '../daemon/daemon-commands.js';
import { addServe } from '../daemon/serve-command.js';
import { addToken } from '../daemon/token-commands.js';
import type { Tools } from '../base/tools.js';

export async function build(daemon: CtlCommand, tools: Tools): Promise<void> {
  daemon
    .description(
      'Run the daemon and manage its token. Other commands find it by --url, by ' +
        'MILLRACE_URL, or by the address in its data directory.',
    )
    .example('ctl daemon serve', 'run it here')
    .example('ctl daemon status', 'check whether it is running')
    .example('ctl daemon install', 'run it as a service');
  await addServe(daemon, tools);
  addStatus(daemon, tools);
  addToken(daemon, tools);
  addInstall(daemon, tools);
}
