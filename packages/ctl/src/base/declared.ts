import type { CommandHelp, OperationCommand } from '@millrace/contract/lists';
import { Argument, Option } from 'commander';
import type { CtlCommand } from './command.js';
import type { Tools } from './tools.js';

/** Adds the options that name a server or a file. */
export type Connect = (command: CtlCommand) => CtlCommand;

/** A command whose work is code: `run` gets the arguments, then the flags, then the command. */
export interface CodeCommand extends CommandHelp {
  readonly usage?: string;
  /** An extra section of the help. */
  readonly section?: Readonly<Parameters<CtlCommand['section']>>;
  /** Instead of that of its group; null for none. */
  readonly connect?: Connect | null;
  readonly run: (...given: never[]) => unknown;
}

/** A group of commands. */
export interface Group extends CommandHelp {
  readonly connect?: Connect | null;
  readonly commands: Commands;
}

export type Commands = Readonly<Record<string, OperationCommand | CodeCommand | Group>>;

/** The server of a group: how to name it, and how to call an operation of it. */
export interface Server {
  readonly connect: Connect | null;
  /** Whether --watch can repeat a view; true by default. */
  readonly hasViews?: boolean;
  readonly call?: (
    command: OperationCommand,
    args: readonly string[],
    flags: Readonly<Record<string, unknown>>,
  ) => Promise<void>;
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
    const connect = 'connect' in declared ? declared.connect : server.connect;
    if ('commands' in declared) {
      describe(command, declared);
      addCommands(command, declared.commands, tools, { ...server, connect: connect ?? null });
      continue;
    }
    describe(command, declared, connect);
    if (declared.isView && server.hasViews !== false) command.shown(tools);
    if ('run' in declared) {
      if (declared.usage !== undefined) command.usage(declared.usage);
      if (declared.section) command.section(...declared.section);
      command.action(declared.run as (...given: unknown[]) => Promise<void>);
      continue;
    }
    const count = command.registeredArguments.length;
    command.action(async (...given: unknown[]) => {
      const flags = given[count] as Record<string, unknown>;
      await server.call!(declared, given.slice(0, count) as string[], flags);
    });
  }
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
    command.addOption(option);
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
