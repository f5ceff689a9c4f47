import type { FlagDescription } from '@millrace/kit/config';
import type { CtlCommand } from '../base/command.js';
import type { Tools } from '../base/tools.js';
import { stopSignal } from '../base/stop-signal.js';

type Flags = Record<string, string | boolean | string[]>;

/**
 * The flags come from the server's own settings, which are slow to load: they are declared only for
 * this command, and for help and completion.
 */
export async function addServe(queue: CtlCommand, tools: Tools): Promise<void> {
  const serve = queue
    .command('serve')
    .summary('Run the queue server')
    .description(
      'Serve the queue over REST and call handlers until Ctrl-C, which waits for requests ' +
        'and callbacks in flight. Every setting can come from a file (--config queue.yaml), ' +
        'a variable or a flag. Prints one line of JSON for each listener when it is ready; ' +
        'logs go to stderr.',
    )
    .example('ctl queue serve --tokens-file tokens.yaml', 'on 127.0.0.1:8081, data in ./data')
    .example('ctl queue serve --config queue.yaml --data /srv/queue', 'with a config file')
    .example('ctl queue serve --config queue.yaml --listen 127.0.0.1:0', 'on any free port')
    .exitCode(0, 'stopped cleanly by Ctrl-C or SIGTERM');
  const [group, name] = tools.words;
  if (group === 'queue' && name !== undefined && name !== 'serve') return;
  const [{ queueConfig }, { flagsOf }] = await Promise.all([
    import('@millrace/queue/config'),
    import('@millrace/kit/config'),
  ]);
  for (const flag of flagsOf(queueConfig)) declare(serve, flag);
  serve
    // Long setting names leave little room for the description.
    .configureHelp({ ...serve.configureHelp(), minWidthToWrap: 30 })
    .action((flags: Flags) => run(flags, tools));
}

function declare(serve: CtlCommand, flag: FlagDescription): void {
  const { default: standard = '[]' } = flag;
  const text = `${flag.description}${standard === '[]' ? '' : ` (default: ${standard})`}`;
  // Completion recognizes files by this value name.
  const syntax = flag.syntax.replace('<path>', flag.name === 'data' ? '<dir>' : '<file>');
  if (flag.kind === 'list') serve.option(syntax, text, collect);
  else serve.option(syntax, text);
  if (flag.kind === 'switch') serve.option(`--no-${flag.name}`, `The same as --${flag.name} off`);
}

function collect(value: string, before: string[] | undefined): string[] {
  return [...(before ?? []), value];
}

async function run(flags: Flags, { terminal, lifecycle, exitWith }: Tools): Promise<void> {
  const { runQueue } = await import('@millrace/queue/serve');
  await lifecycle.serve(async (stopped) => {
    const code = await runQueue({
      flags,
      environment: terminal.env,
      signals: stopSignal(stopped),
      write: (line) => terminal.out.write(line),
    });
    exitWith(code);
  });
}
