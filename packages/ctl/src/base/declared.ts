import type { CommandHelp, OperationCommand } from '@millrace/contract/lists';
import { Argument, Option, type Command } from 'commander';
import type { CtlCommand } from './command.js';
import type { Tools } from './tools.js';

/** Adds the options that name a server or a file. */
export type Connect = (command: CtlCommand) => CtlCommand;

type Flags = Readonly<Record<string, unknown>>;

/** Does the work of a command: it gets the arguments, the flags, then the tools. */
export type Handler = (...given: never[]) => unknown;

/** A command whose work is code, which is loaded when it runs. */
export interface CodeCommand extends CommandHelp {
  readonly usage?: string;
  /** An extra section of the help. */
  readonly section?: Readonly<Parameters<CtlCommand['section']>>;
  /** Instead of that of its group; null for none. */
  readonly connect?: Connect | null;
  /** Its options are those of another program, which parses them. */
  readonly passesOptionsOn?: boolean;
  readonly run: () => Promise<Handler>;
}

/** A group of commands. With `run`, it is a command too. */
export interface Group extends CommandHelp, Partial<Omit<CodeCommand, keyof CommandHelp>> {
  readonly commands: Commands;
}

export type Commands = Readonly<Record<string, OperationCommand | CodeCommand | Group>>;

/** The server of a group: how to name it, and how to call an operation of it. */
export interface Server {
  readonly connect: Connect | null;
  /** Whether --watch can repeat a view; true by default. */
  readonly hasViews?: boolean;
  readonly call?: (command: OperationCommand, args: readonly string[], flags: Flags) => unknown;
  /** Runs a handler that needs more than the tools. */
  readonly run?: (handler: Handler, args: readonly unknown[], flags: Flags) => unknown;
}

/** Adds commands as they are declared. */
export function addCommands(
  parent: CtlCommand,
  commands: Commands,
  tools: Tools,
  server: Server,
): void {
  for (const [name, declared] of Object.entries(commands)) {
    const command = parent.command(name).summary(declared.summary);
    addCommand(command, declared, tools, server);
  }
}

/** Adds what is declared of one command. */
export function addCommand(
  command: CtlCommand,
  declared: Commands[string],
  tools: Tools,
  server: Server,
): void {
  const connect = ('connect' in declared ? declared.connect : server.connect) ?? null;
  const isGroup = 'commands' in declared;
  const isCode = 'run' in declared;
  if (isGroup && isCode) keepFlagsApart(command);
  describe(command, declared, isGroup && !isCode ? null : connect);
  if ('usage' in declared && declared.usage !== undefined) command.usage(declared.usage);
  if ('section' in declared && declared.section) command.section(...declared.section);
  if ('passesOptionsOn' in declared) command.allowUnknownOption();
  if (declared.isView && server.hasViews !== false) command.shown(tools);
  if (isGroup) addCommands(command, declared.commands, tools, { ...server, connect });
  if (isGroup && !isCode) return;
  const count = command.registeredArguments.length;
  command.action(async (...given: unknown[]) => {
    const args = given.slice(0, count);
    const flags = flagsOf(command);
    if ('operation' in declared) await server.call!(declared, args as string[], flags);
    else {
      const handler = await declared.run!();
      if (server.run) await server.run(handler, args, flags);
      else await (handler as (...all: unknown[]) => unknown)(...args, flags, tools);
    }
  });
}

/** Flags of a group that is a command count too: `ctl usage --url ... spend`. */
function flagsOf(command: Command): Flags {
  const { parent } = command;
  const isInherited = parent?.parent && isCommand(parent);
  return isInherited ? { ...command.opts(), ...flagsOf(parent) } : command.opts();
}

/**
 * For a group that is also a command: its flags come before the name of a subcommand, which may
 * have flags of the same names, and help does not list them as global.
 */
function keepFlagsApart(group: CtlCommand): void {
  apart.add(group);
  group.enablePositionalOptions().configureHelp({
    ...group.configureHelp(),
    visibleGlobalOptions: (command: Command) =>
      rootOf(command).options.filter(({ long, hidden }) => long !== '--version' && !hidden),
  });
}

const apart = new WeakSet<Command>();

function isCommand(group: Command): boolean {
  return apart.has(group) || (group.parent !== null && isCommand(group.parent));
}

function rootOf(command: Command): Command {
  return command.parent ? rootOf(command.parent) : command;
}

/** Describes a command as its help declares it. */
export function describe(command: CtlCommand, help: CommandHelp, connect?: Connect | null): void {
  command.description(help.description);
  if (help.alias !== undefined) command.alias(help.alias);
  for (const [syntax, meaning, choices] of help.arguments ?? []) {
    const argument = new Argument(syntax, meaning);
    command.addArgument(choices ? argument.choices(choices) : argument);
  }
  for (const [syntax, meaning, details = {}] of help.options ?? []) {
    const option = new Option(syntax, meaning).makeOptionMandatory(details.required ?? false);
    if (details.choices) option.choices(details.choices);
    if (details.default !== undefined) option.default(details.default);
    if (details.repeats) option.argParser(collect);
    command.addOption(option.hideHelp(details.isHidden ?? false));
  }
  connect?.(command);
  for (const [line, note] of help.examples) command.example(line, note);
  for (const [code, meaning] of Object.entries(help.exitCodes ?? {})) {
    command.exitCode(Number(code), meaning);
  }
}

/** Collects the values of an option that may be repeated. */
export function collect(value: string, before: string[] | undefined): string[] {
  return [...(before ?? []), value];
}
