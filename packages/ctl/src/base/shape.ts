import type { Argument, Command, Option } from 'commander';

export interface Example {
  readonly line: string;
  readonly note: string;
}

/** Help metadata that commander does not have. */
export interface Described extends Command {
  readonly path: string;
  readonly examples: readonly Example[];
  readonly exitCodes: ReadonlyMap<number, string>;
  readonly subcommands: readonly Described[];
}

/** A command as data: printed by `--help --json` and used to build completion scripts. */
export interface CommandShape {
  readonly name: string;
  readonly path: string;
  readonly aliases: readonly string[];
  readonly summary: string;
  readonly description: string;
  readonly usage: string;
  readonly arguments: readonly ArgumentShape[];
  readonly options: readonly OptionShape[];
  readonly examples: readonly Example[];
  readonly exit_codes: Readonly<Record<string, string>>;
  readonly commands: readonly CommandShape[];
}

export interface ArgumentShape {
  readonly name: string;
  readonly description: string;
  readonly required: boolean;
  readonly variadic: boolean;
  readonly choices: readonly string[];
}

export interface OptionShape {
  readonly long: string;
  readonly short: string | null;
  readonly description: string;
  /** Name of the option's value, such as `dir`; null for a switch. */
  readonly value: string | null;
  readonly choices: readonly string[];
}

export function shapeOf(command: Described): CommandShape {
  const help = command.createHelp();
  return {
    name: command.name(),
    path: command.path,
    aliases: command.aliases(),
    summary: command.summary(),
    description: command.description(),
    usage: help.commandUsage(command),
    arguments: command.registeredArguments.map(argumentShape),
    options: [...help.visibleOptions(command), ...help.visibleGlobalOptions(command)].map(
      optionShape,
    ),
    examples: command.examples,
    exit_codes: Object.fromEntries(command.exitCodes),
    commands: command.subcommands.map(shapeOf),
  };
}

function argumentShape(argument: Argument): ArgumentShape {
  return {
    name: argument.name(),
    description: argument.description,
    required: argument.required,
    variadic: argument.variadic,
    choices: argument.argChoices ?? [],
  };
}

function optionShape(option: Option): OptionShape {
  return {
    long: option.long ?? '',
    short: option.short ?? null,
    description: option.description,
    value: /[<[]([^\]>.]+)/.exec(option.flags)?.[1] ?? null,
    choices: option.argChoices ?? [],
  };
}
