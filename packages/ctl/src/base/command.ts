import { stripVTControlCharacters } from 'node:util';
import { Command, Help, type Argument, type HelpContext, type Option } from 'commander';
import { nearest } from '@millrace/kit/nearest';
import { asTyped } from './command-name.js';
import { passingOn } from './output-args.js';
import { shapeOf, type Example } from './shape.js';

/** The command line is invalid. `path` is the command whose help explains it. */
export class Mistake extends Error {
  override readonly name = 'Mistake';

  constructor(
    message: string,
    readonly path: string,
  ) {
    super(message);
  }
}

/** Runs what shows something: once, paged, or again and again. */
export type Presenter = (
  flags: { readonly watch?: boolean; readonly interval?: string },
  show: () => Promise<void>,
) => Promise<void>;

/** A commander command with examples and the meaning of its exit codes. */
export class CtlCommand extends Command {
  readonly examples: Example[] = [];
  /** Extra sections of the help. */
  readonly sections: { readonly title: string; readonly items: readonly Item[] }[] = [];
  readonly exitCodes = new Map<number, string>([
    [0, 'ok'],
    [1, 'failure'],
    [2, 'usage error'],
  ]);

  constructor(name?: string) {
    super(name);
    // `ctl help` is a command of its own; groups do not need one each.
    this.helpCommand(false);
  }

  example(line: string, note: string): this {
    this.examples.push({ line, note });
    return this;
  }

  section(title: string, items: readonly Item[]): this {
    this.sections.push({ title, items });
    return this;
  }

  exitCode(code: number, meaning: string): this {
    this.exitCodes.set(code, meaning);
    return this;
  }

  /** Shows a list or one thing: --watch repeats it, and output longer than the screen is paged. */
  shown({ present }: { readonly present: Presenter }): this {
    this.option('--watch', 'Refresh until you press Ctrl-C').option(
      '--interval <duration>',
      'Time between two refreshes (default: 2s)',
    ).#present = present;
    return this;
  }

  #present: Presenter | undefined;

  override action(run: Parameters<Command['action']>[0]): this {
    const present = this.#present;
    if (!present) return super.action(run);
    return super.action((...args) =>
      present(this.optsWithGlobals(), async () => run.apply(this, args)),
    );
  }

  /** All names from the root, as typed: `ctl queue serve`. */
  get path(): string {
    return this.parent instanceof CtlCommand ? `${this.parent.path} ${this.name()}` : this.name();
  }

  get subcommands(): readonly CtlCommand[] {
    return this.commands.filter((command) => command instanceof CtlCommand);
  }

  subcommand(name: string): CtlCommand | undefined {
    return this.subcommands.find(
      (command) => command.name() === name || command.aliases().includes(name),
    );
  }

  override createCommand(name?: string): CtlCommand {
    return new CtlCommand(name);
  }

  override createHelp(): Help {
    return Object.assign(new CtlHelp(), this.configureHelp());
  }

  /** Commander would print and exit here; failures are reported in one place instead. */
  override error(message: string): never {
    const oneLine = message
      .replace(/^error: /, '')
      .replace(
        /^command-argument value ('.*') is invalid for argument ('.*?')/s,
        'argument $2 cannot be $1',
      )
      .replace(/\.?\s*\n\((Did you mean .+\?)\)$/s, '. $1')
      .replaceAll(/\s*\n\s*/g, ' ');
    throw new Mistake(
      this.#asUnknownCommand(oneLine) ?? this.#withGlobalOption(oneLine) ?? oneLine,
      this.path,
    );
  }

  /** A group that is also a command takes a misspelt subcommand for an argument. */
  #asUnknownCommand(message: string): string | undefined {
    const word = this.args[0];
    if (!this.#isPureGroup || word === undefined || !message.startsWith('too many arguments'))
      return undefined;
    const meant = nearest(
      word,
      this.subcommands.map((command) => command.name()),
    );
    return `unknown command '${word}'${meant === undefined ? '' : `. Did you mean ${meant}?`}`;
  }

  /** Commander suggests no global option below a group that is also a command. */
  #withGlobalOption(message: string): string | undefined {
    const [, flag] = /^unknown option '(--[^'=]+)'$/.exec(message) ?? [];
    if (flag === undefined) return undefined;
    const known = this.createHelp().visibleGlobalOptions(this);
    const meant = nearest(
      flag,
      known.flatMap(({ long }) => long ?? []),
    );
    return meant === undefined ? undefined : `${message}. Did you mean ${meant}?`;
  }

  override helpInformation(context?: HelpContext): string {
    // Commander reports a missing subcommand as a help request.
    if (context?.error === true) {
      if (!this.#writesJson) {
        this.configureOutput().writeOut?.(super.helpInformation({ error: false }));
      }
      const names = this.subcommands.map((command) => command.name()).join(', ');
      this.error(`'${this.path}' needs one of: ${names}`);
    }
    // Commander would show the group's help for `ctl queue srve --help` and exit 0.
    const word = this.args[0];
    if (this.#isPureGroup && word !== undefined && !word.startsWith('-')) {
      if (!this.subcommand(word)) this.complainAbout(word);
    }
    if (!this.#writesJson) return super.helpInformation(context);
    return `${JSON.stringify(shapeOf(this), null, 2)}\n`;
  }

  /** Rejects an unknown subcommand, with commander's "did you mean". */
  complainAbout(word: string): never {
    if (this.#isPureGroup) this.parse([word], { from: 'user' });
    this.error(`'${this.path}' has no command '${word}'`);
  }

  get #writesJson(): boolean {
    const { json, outputFormat } = this.optsWithGlobals<Record<string, unknown>>();
    return json === true || outputFormat === 'json' || outputFormat === 'yaml';
  }

  get #isPureGroup(): boolean {
    return this.subcommands.length > 0 && this.registeredArguments.length === 0;
  }
}

class CtlHelp extends Help {
  override showGlobalOptions = true;
  #optionWidth = 0;
  #nameWidth = 0;

  /** Only names: arguments would leave no room for summaries. */
  override subcommandTerm(command: Command): string {
    return command.name();
  }

  override commandUsage(command: Command): string {
    return asTyped(super.commandUsage(command));
  }

  override commandDescription(command: Command): string {
    return asTyped(super.commandDescription(command));
  }

  override subcommandDescription(command: Command): string {
    return asTyped(super.subcommandDescription(command));
  }

  override optionDescription(option: Option): string {
    return asTyped(super.optionDescription(option));
  }

  override argumentDescription(argument: Argument): string {
    return asTyped(super.argumentDescription(argument));
  }

  override visibleGlobalOptions(command: Command): Option[] {
    const left = new Set(['--version', ...(passesOptionsOn(command) ? formatOptions : [])]);
    return super.visibleGlobalOptions(command).filter(({ long }) => !left.has(long ?? ''));
  }

  /** Remembers two widths: long options would leave no room for the summaries of commands. */
  override padWidth(command: Command, helper: Help): number {
    this.#optionWidth = super.padWidth(command, helper);
    const names = [
      ...this.visibleCommands(command).map((one) => this.subcommandTerm(one)),
      ...this.visibleArguments(command).map((one) => this.argumentTerm(one)),
    ];
    this.#nameWidth = Math.max(0, ...names.map((name) => name.length));
    return this.#optionWidth;
  }

  override formatItem(term: string, width: number, text: string, helper: Help): string {
    const isName = width === this.#optionWidth && !stripVTControlCharacters(term).startsWith('-');
    return super.formatItem(term, isName ? this.#nameWidth : width, text, helper);
  }

  override formatHelp(command: Command, helper: Help): string {
    const text = super.formatHelp(command, helper).trimEnd();
    if (!(command instanceof CtlCommand)) return `${text}\n`;
    const examples = command.examples.map(({ line, note }): Item => [asTyped(line), asTyped(note)]);
    const exitCodes = [...command.exitCodes].map(([code, meaning]): Item => [`${code}`, meaning]);
    const more = command.sections.flatMap(({ title, items }) => ['', ...section(title, items)]);
    return [
      text,
      ...more,
      ...(examples.length === 0 ? [] : ['', ...section('Examples:', examples)]),
      '',
      ...section('Exit codes:', exitCodes),
    ]
      .map((line) => `${line}\n`)
      .join('');

    function section(title: string, items: readonly Item[]): string[] {
      const width = Math.max(...items.map(([term]) => term.length));
      const isStacked = width > WIDEST_TERM;
      return [
        helper.styleTitle(title),
        ...items.map(([term, meaning]) =>
          isStacked
            ? `  ${term}\n      ${meaning}`
            : helper.formatItem(term, width, meaning, helper),
        ),
      ];
    }
  }
}

const formatOptions = ['--output-format', '--utc'];

function passesOptionsOn(command: Command): boolean {
  const { parent } = command;
  return parent?.parent ? passesOptionsOn(parent) : passingOn.has(command.name());
}

/** The width of the term column; longer terms have their text on the next line. */
const WIDEST_TERM = 46;

type Item = readonly [term: string, meaning: string];
