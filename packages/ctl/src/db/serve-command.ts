import type { CtlCommand } from '../base/command.js';
import type { Tools } from '../base/tools.js';
import { stopSignal } from '../base/stop-signal.js';

/**
 * The flags come from the server's own settings, which are slow to load: they are declared only for
 * this command, and for help and completion.
 */
export async function addServe(db: CtlCommand, tools: Tools): Promise<void> {
  const serve = db
    .command('serve')
    .summary('Run the database server')
    .description(
      'Serve a database over gRPC, REST and a Unix socket until Ctrl-C, which waits for ' +
        'calls in flight. gRPC and REST need an API key: without --keys-file the first start ' +
        'creates one in db.key of the data directory, which commands find by themselves; the socket ' +
        'needs none. Every setting can come from a file (--config db.yaml), a variable or a ' +
        'flag. Prints one line of JSON for each listener when it is ready; logs go to stderr.',
    )
    .example('ctl db serve', 'gRPC on 5433, REST on 8080, data in ./data')
    .example('ctl db serve --config db.yaml --data /srv/db', 'with a config file')
    .example('ctl db serve --grpc 127.0.0.1:0 --http 127.0.0.1:0', 'on any free ports')
    .exitCode(0, 'stopped cleanly by Ctrl-C or SIGTERM');
  const [group, name] = tools.words;
  if (group === 'db' && name !== undefined && name !== 'serve') return;
  const [{ databaseConfig }, { flagsOf }] = await Promise.all([
    import('@millrace/db/config'),
    import('@millrace/kit/config'),
  ]);
  for (const flag of flagsOf(databaseConfig)) declare(serve, flag);
  serve.option(
    '--no-auth',
    'Require no API key, on a loopback address only (the same as --auth none)',
  );
  serve.action((flags: Record<string, string | boolean | string[]>) => run(flags, tools));
}

interface Flag {
  readonly name: string;
  readonly aliases: readonly string[];
  readonly syntax: string;
  readonly kind: 'value' | 'switch' | 'list';
  readonly description: string;
  readonly default?: string;
}

function declare(serve: CtlCommand, flag: Flag): void {
  const standard = flag.default === undefined ? '' : ` (default: ${flag.default})`;
  // Completion recognizes files by this value name.
  const syntax = flag.syntax.replace('<path>', flag.name === 'data' ? '<dir>' : '<file>');
  const text = `${flag.description}${standard}`;
  if (flag.kind === 'list') serve.option(syntax, text, collect);
  else serve.option(syntax, text);
  if (flag.kind === 'switch') serve.option(`--no-${flag.name}`, `The same as --${flag.name} off`);
}

function collect(value: string, before: string[] | undefined): string[] {
  return [...(before ?? []), value];
}

async function run(
  flags: Record<string, string | boolean | string[]>,
  { terminal, lifecycle, exitWith }: Tools,
): Promise<void> {
  const { runDatabase } = await import('@millrace/db/serve');
  await lifecycle.serve(async (stopped) => {
    const code = await runDatabase({
      // Commander represents `--no-auth` as auth: false.
      flags: flags['auth'] === false ? { ...flags, auth: 'none' } : flags,
      environment: terminal.env,
      signals: stopSignal(stopped),
      write: (line) => terminal.out.write(line),
    });
    exitWith(code);
  });
}
