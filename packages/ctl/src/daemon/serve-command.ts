import type { FlagDescription } from '@millrace/kit/config';
import { Option } from 'commander';
import type { CtlCommand } from '../base/command.js';
import type { Tools } from '../base/tools.js';
import { stopSignal } from '../base/stop-signal.js';

type Flags = Record<string, string | boolean | string[]>;

/**
 * The flags come from the server's own settings, which are slow to load: they are declared only for
 * this command, and for help and completion.
 */
export async function addServe(daemon: CtlCommand, tools: Tools): Promise<void> {
  const serve = daemon
    .command('serve')
    .summary('Run the daemon')
    .description(
      'Serve the REST API, MCP and the dashboard until Ctrl-C, which waits for requests in ' +
        'flight. Callers need a token, which the first start writes to daemon.token in the ' +
        'data directory; commands find it by themselves. Every setting can come from a file ' +
        '(--config config.yaml), a variable or a flag. Prints one line of JSON when it is ' +
        'ready; logs go to stderr.',
    )
    .example('ctl daemon serve', 'on 127.0.0.1:8765')
    .example('ctl daemon serve --config config.yaml --data ./data', 'with a config file')
    .example('ctl daemon serve --listen 127.0.0.1:0', 'on any free port')
    .exitCode(0, 'stopped cleanly by Ctrl-C or SIGTERM');
  const [group, name] = tools.words;
  if (group === 'daemon' && name !== undefined && name !== 'serve') return;
  const [{ daemonConfig }, { flagsOf }] = await Promise.all([
    import('@millrace/daemon/config'),
    import('@millrace/kit/config'),
  ]);
  for (const flag of flagsOf(daemonConfig)) declare(serve, flag);
  serve.option('--no-auth', 'Require no token, on loopback only (the same as --auth none)');
  serve
    .option(
      '--provider-url <provider=url>',
      'Query this URL for usage: claude=http://..., cursor=..., gemini=...; all three ' +
        'without a name',
      collect,
    )
    .section('Switches:', [
      ['--savings, --savings on', 'turn it on'],
      ['--savings off, --no-savings', 'turn it off'],
    ])
    // Long setting names leave little room for the description.
    .configureHelp({ ...serve.configureHelp(), minWidthToWrap: 30 })
    .action((flags: Flags) => run(flags, tools));
}

function declare(serve: CtlCommand, flag: FlagDescription): void {
  const text = `${flag.description}${standardOf(flag)}`;
  const isHidden = flag.description === '';
  serve.addOption(optionOf(flag, syntaxOf(flag, flag.name), text, isHidden));
  for (const alias of flag.aliases) {
    serve.addOption(optionOf(flag, syntaxOf(flag, alias), `The same as --${flag.name}`, isHidden));
  }
  if (flag.kind === 'switch') serve.addOption(optionOf(flag, `--no-${flag.name}`, '', true));
}

function optionOf(flag: FlagDescription, syntax: string, text: string, isHidden: boolean): Option {
  const option = new Option(syntax, text).hideHelp(isHidden);
  if (flag.kind === 'list') option.argParser(collect);
  return option;
}

function syntaxOf(flag: FlagDescription, name: string): string {
  // Completion recognizes files by this value name.
  const word = flag.key === 'data_dir' ? '<dir>' : '<file>';
  return flag.syntax.replace(`--${flag.name}`, `--${name}`).replace('<path>', word);
}

/** Omits long defaults, such as URLs; `ctl config` shows them. */
function standardOf({ kind, default: standard = '' }: FlagDescription): string {
  if (standard === '' || standard === '[]' || standard.length > 24) return '';
  const shown = kind === 'switch' ? (standard === 'true' ? 'on' : 'off') : standard;
  return ` (default: ${shown})`;
}

function collect(value: string, before: string[] | undefined): string[] {
  return [...(before ?? []), value];
}

async function run(given: Flags, { terminal, lifecycle, exitWith }: Tools): Promise<void> {
  const [{ runDaemon }, { providerFlags }] = await Promise.all([
    import('@millrace/daemon/serve'),
    import('./provider-flags.js'),
  ]);
  const { providerUrl, ...rest } = given;
  const flags = {
    ...rest,
    // Commander represents `--no-auth` as auth: false.
    ...(rest['auth'] === false && { auth: 'none' }),
    ...providerFlags(Array.isArray(providerUrl) ? providerUrl : []),
  };
  await lifecycle.serve(async (stopped) => {
    const code = await runDaemon({
      flags,
      environment: terminal.env,
      signals: stopSignal(stopped),
      write: (line) => terminal.out.write(line),
    });
    exitWith(code);
  });
}
