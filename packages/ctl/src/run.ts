import { CommanderError, Option } from 'commander';
import { CtlCommand, type Presenter } from './base/command.js';
import { reportFailure } from './base/failure.js';
import { Groups, type GroupEntry } from './base/groups.js';
import type { Lifecycle } from './base/lifecycle.js';
import { outputArgs, outputFormats } from './base/output-args.js';
import { registry as everything } from './registry.js';
import { openTerminal, type Outside, type Terminal } from './base/terminal.js';
import { version } from './base/version.js';

/** Runs one command line and returns its exit code. */
export async function run(
  args: readonly string[],
  outside: Outside,
  lifecycle: Lifecycle,
  registry: readonly GroupEntry[] = everything,
): Promise<number> {
  const { format, words, hasFormat } = outputArgs(args);
  const converter =
    (format === 'yaml' || format === 'csv' || format === 'name') && !writesOwnCsv(words, format)
      ? (await import('./render/output-format.js')).converterTo(format)
      : undefined;
  const terminal = openTerminal(args, outside, converter);
  let exitCode = 0;
  const exitWith = (code: number): void => {
    exitCode = code;
  };
  const present: Presenter = async (flags, show) => {
    const presenting = await import('./base/presenting.js');
    await presenting.present(flags, { terminal, lifecycle }, show);
  };
  try {
    const root = rootCommand(terminal, hasFormat);
    const groups = new Groups(root, registry, {
      terminal,
      lifecycle,
      exitWith,
      words,
      args,
      present,
    });
    const [name] = words;
    if (name !== undefined) await groups.fill(name);
    else if (terminal.json) await groups.fillAll();

    // `ctl` without arguments shows the help and succeeds.
    const argv = args.every((arg) => arg === '--json') ? [...args, '--help'] : args;
    await root.parseAsync(argv, { from: 'user' });
    return exitCode;
  } catch (error) {
    // Thrown by commander after it has shown the help or the version.
    if (error instanceof CommanderError && error.exitCode === 0) return 0;
    return await reportFailure(error, terminal);
  } finally {
    const left = converter?.end() ?? '';
    if (left !== '') outside.stdout.write(left);
  }
}

/** An export is CSV as import reads it, and streams. */
function writesOwnCsv(words: readonly string[], format: string): boolean {
  return format === 'csv' && words[0] === 'db' && words[1] === 'export';
}

/** Maximum line length of help texts. */
const WIDEST_HELP_COLUMNS = 100;

function rootCommand(terminal: Terminal, hasFormat: boolean): CtlCommand {
  const { out, err, json } = terminal;
  const root = new CtlCommand('ctl')
    .description(
      'Millrace: a durable task queue, a daemon for coding agents and an embedded database.',
    )
    .usage('<command> [options]')
    .version(
      json ? JSON.stringify({ version: version() }) : version(),
      '-V, --version',
      'Show the version',
    )
    .helpOption('-h, --help', 'Show help')
    .option('--json', 'Write only JSON to stdout, and errors as JSON to stderr')
    .option('--no-pager', 'Write long output straight to the terminal')
    .example('ctl up', 'start everything on this machine')
    .example('ctl doctor', 'check whether this machine is ready')
    .example('ctl help doctor', 'help for one command')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => out.write(text),
      writeErr: (text) => err.write(text),
      getOutHasColors: () => out.colour,
      getOutHelpWidth: () =>
        Math.min(Number.isFinite(out.columns) ? out.columns : 80, WIDEST_HELP_COLUMNS),
      stripColor: (text) => text,
    })
    .configureHelp({
      styleTitle: (text) => out.paint('strong', text),
    });
  const format = new Option(
    '-o, --output-format <format>',
    'Format of the output; name: one name or id per line, of what has one',
  );
  if (!hasFormat) return root;
  return root
    .addOption(format.choices(outputFormats))
    .option('--utc', 'Show times as RFC 3339 times in UTC instead of ages');
}
