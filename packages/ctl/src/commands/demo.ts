import type { CtlCommand } from '../command.js';
import type { DemoFlags } from '../demo/demo.js';
import type { Tools } from '../tools.js';

export function build(demo: CtlCommand, tools: Tools): void {
  demo
    .description(
      'Shows in under a minute what Millrace does, without an account or a model: starts ' +
        'everything on free ports in a temporary directory, lays work for a made-up agent in ' +
        'the queue, lets it succeed, lets another fail and land in the dead-letter queue, ' +
        'redrives it to success and cleans up. Touches nothing of yours.',
    )
    .option('--keep', 'Leave it running at the end, until Ctrl-C')
    .example('ctl demo', 'watch it')
    .example('ctl demo --keep', 'and look around afterwards')
    .example('ctl demo --json', 'a line of JSON for everything that happens')
    .exitCode(0, 'everything went as it should')
    .action(async (flags: DemoFlags) => {
      const { runDemo } = await import('../demo/demo.js');
      await runDemo(flags, tools);
    });
}
