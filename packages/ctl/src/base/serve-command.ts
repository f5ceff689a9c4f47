import type { CommandHelp } from '@millrace/contract/lists';
import type { ConfigDefinition, FlagDescription } from '@millrace/kit/config';
import { Option } from 'commander';
import type { CtlCommand } from './command.js';
import { collect, describe } from './declared.js';
import type { Tools } from './tools.js';
import type { SignalSource } from '@millrace/kit/http';

export type ServeFlags = Record<string, string | boolean | string[]>;

/** Runs a server until a signal; resolves with the exit code. */
type Serve = (options: {
  flags: ServeFlags;
  environment: Tools['terminal']['env'];
  signals: ReturnType<typeof stopSignal>;
  write: (line: string) => void;
}) => Promise<number>;

export interface ServeCommand extends Omit<CommandHelp, 'exitCodes'> {
  /** The settings, which become flags. */
  readonly config: () => Promise<ConfigDefinition>;
  readonly serve: () => Promise<Serve>;
  /** The default as help shows it; empty for none. */
  readonly defaultText?: (flag: FlagDescription) => string;
  /** Meaning of --no-auth, for a server that has it. */
  readonly noAuth?: string;
  /** Declares other names of settings too, and hides the names that turn switches off. */
  readonly hasAliases?: boolean;
  /** Adds flags of its own, and turns them into settings. */
  readonly extend?: (serve: CtlCommand) => void;
  readonly settingsOf?: (flags: ServeFlags) => Promise<ServeFlags>;
  /** Long setting names leave little room for the description. */
  readonly minWidthToWrap?: number;
}

/**
 * Adds `serve`. The flags come from the server's own settings, which are slow to load: they are
 * declared only for this command, and for help and completion.
 */
export async function addServe(
  group: CtlCommand,
  tools: Tools,
  declared: ServeCommand,
): Promise<void> {
  const serve = group.command('serve').summary(declared.summary);
  describe(serve, { ...declared, exitCodes: { 0: 'stopped cleanly by Ctrl-C or SIGTERM' } });
  const [name, command] = tools.words;
  if (name === group.name() && command !== undefined && command !== 'serve') return;
  const [config, { flagsOf }] = await Promise.all([
    declared.config(),
    import('@millrace/kit/config'),
  ]);
  for (const flag of flagsOf(config)) addFlag(serve, flag, declared);
  if (declared.noAuth !== undefined) serve.option('--no-auth', declared.noAuth);
  declared.extend?.(serve);
  const { minWidthToWrap } = declared;
  if (minWidthToWrap !== undefined) {
    serve.configureHelp({ ...serve.configureHelp(), minWidthToWrap });
  }
  serve.action((flags: ServeFlags) => run(declared, flags, tools));
}

function addFlag(serve: CtlCommand, flag: FlagDescription, declared: ServeCommand): void {
  const { hasAliases = false, defaultText = ({ default: text = '' }) => text } = declared;
  const standard = defaultText(flag);
  const text = `${flag.description}${standard === '' ? '' : ` (default: ${standard})`}`;
  const isHidden = hasAliases && flag.description === '';
  const add = (syntax: string, meaning: string, hidden = isHidden) => {
    const option = new Option(syntax, meaning).hideHelp(hidden);
    serve.addOption(flag.kind === 'list' ? option.argParser(collect) : option);
  };
  add(syntaxOf(flag, flag.name), text);
  for (const alias of hasAliases ? flag.aliases : []) {
    add(syntaxOf(flag, alias), `The same as --${flag.name}`);
  }
  if (flag.kind !== 'switch') return;
  if (hasAliases) add(`--no-${flag.name}`, '', true);
  else add(`--no-${flag.name}`, `The same as --${flag.name} off`);
}

/** Completion recognizes files by the name of the value. */
function syntaxOf(flag: FlagDescription, name: string): string {
  const word = flag.key === 'data_dir' || flag.name === 'data' ? '<dir>' : '<file>';
  return flag.syntax.replace(`--${flag.name}`, `--${name}`).replace('<path>', word);
}

async function run(
  { serve, settingsOf = async (flags) => flags }: ServeCommand,
  given: ServeFlags,
  { terminal, lifecycle, exitWith }: Tools,
): Promise<void> {
  const [start, settings] = await Promise.all([serve(), settingsOf(given)]);
  // Commander represents `--no-auth` as auth: false.
  const flags = settings['auth'] === false ? { ...settings, auth: 'none' } : settings;
  await lifecycle.serve(async (stopped) => {
    const code = await start({
      flags,
      environment: terminal.env,
      signals: stopSignal(stopped),
      write: (line) => terminal.out.write(line),
    });
    exitWith(code);
  });
}

/**
 * Adapts the end of a command to the signal source of a server. A late listener is notified too,
 * because a server may be stopped while it is still starting.
 */
export function stopSignal(stopped: Promise<void>): SignalSource {
  const listeners = new Set<() => void>();
  return {
    on(signal, listener) {
      if (signal !== 'SIGTERM') return;
      listeners.add(listener);
      void stopped.then(() => {
        if (listeners.delete(listener)) listener();
      });
    },
    removeListener: (_signal, listener) => void listeners.delete(listener),
    // The command handles a second signal itself.
    exit: () => undefined,
  };
}
