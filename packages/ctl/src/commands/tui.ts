import type { CtlCommand } from '../base/command.js';
import { withDaemon } from '../daemon/api.js';
import type { Tools } from '../base/tools.js';
import type { TuiFlags } from '../tui/run-tui.js';

export function build(tui: CtlCommand, tools: Tools): void {
  withDaemon(
    tui.description(
      'Show agents, their questions, queues, backends, spend and the inbox on the whole ' +
        'terminal, live. Enable and disable backends, answer questions, attach to agents, and ' +
        'pause and redrive queues. The last line shows the keys; q quits.',
    ),
  )
    .option('--queue-url <url>', 'Address of the queue (default: $MILLRACE_QUEUE_URL)')
    .option(
      '--token-file <file>',
      'File with the bearer token of the queue (default: $MILLRACE_QUEUE_TOKEN)',
    )
    .example('ctl tui', 'open the terminal dashboard')
    .example('ctl tui --url http://127.0.0.1:8765', 'of this daemon')
    .exitCode(2, 'usage error, or not on a terminal')
    .action(async (flags: TuiFlags) => {
      const { runTui } = await import('../tui/run-tui.js');
      await runTui(flags, tools);
    });
}
