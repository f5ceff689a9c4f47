import type { CtlCommand } from '../base/command.js';
import type { DemoFlags } from '../demo/demo.js';
import type { Tools } from '../base/tools.js';

export function build(demo: CtlCommand, tools: Tools): void {
  demo
    .description(
      'Run an end-to-end demo in under a minute, without an account or a model: start ' +
        'everything on free ports in a temporary directory, queue work for a fake agent, let ' +
        'one task succeed and another fail and go to the dead-letter queue, redrive it to ' +
        'success, and clean up. Your data is not touched.',
    )
    .option('--keep', 'Keep it running at the end, until Ctrl-C')
    .example('ctl demo', 'watch it')
    .example('ctl demo --keep', 'explore it afterwards')
    .example('ctl demo --json', 'one line of JSON per event')
    .exitCode(0, 'every step succeeded')
    .action(async (flags: DemoFlags) => {
      const { runDemo } = await import('../demo/demo.js');
      await runDemo(flags, tools);
    });
}
