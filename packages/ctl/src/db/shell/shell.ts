import { createInterface, type CompleterResult, type Interface } from 'node:readline';
import { join, dirname } from 'node:path';
import { CommanderError } from 'commander';
import type { RemoteDatabase } from '@millrace/db/client';
import { programName } from '../../base/command-name.js';
import { CtlCommand, Mistake } from '../../base/command.js';
import { dataDirectory } from '../../base/data-directory.js';
import { reportFailure } from '../../base/failure.js';
import type { Tools } from '../../base/tools.js';
import type { DatabaseTools } from '../connection.js';
import { tokenize, unquote } from '../../base/tokens.js';
import { Completer } from './completion.js';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { messageOf, whenThere } from '@millrace/kit/errors';
import type { Terminal } from '../../base/terminal.js';

/** Adds the commands of the shell to a command. */
export type AddCommands = (db: CtlCommand, tools: DatabaseTools) => void;

const extras = ['help', 'exit', 'quit'];

/**
 * Reads commands line by line and runs them on one connection. A line with an open bracket or quote
 * continues on the next one. In a terminal the shell reports an error and continues; in a script
 * the first error ends it.
 */
export async function runShell(
  database: RemoteDatabase,
  tools: Tools,
  addCommands: AddCommands,
): Promise<void> {
  const shell = new Shell(database, tools, addCommands);
  if (tools.terminal.in.isScreen) await shell.talk();
  else await shell.script();
}

class Shell {
  readonly #completer: Completer;
  #pending = '';
  #running: AbortController | undefined;

  constructor(
    private readonly database: RemoteDatabase,
    private readonly tools: Tools,
    private readonly addCommands: AddCommands,
  ) {
    this.#completer = new Completer(database, this.#commands(tools), extras);
  }

  /** Interactive mode. */
  async talk(): Promise<void> {
    const { terminal } = this.tools;
    const { out } = terminal;
    const file = join(dataDirectory(undefined, terminal.env), 'db-shell-history');
    const history = await readHistory(file);
    const lines = createInterface({
      input: terminal.in.stream,
      output: out.stream as NodeJS.WritableStream,
      terminal: true,
      history,
      historySize: 1000,
      removeHistoryDuplicates: true,
      completer: (line: string, done: (error: Error | null, result?: CompleterResult) => void) => {
        this.#completer.complete(line).then((result) => done(null, result), done);
      },
    });
    let typed: readonly string[] = history;
    lines.on('history', (entries: string[]) => (typed = [...entries]));
    lines.on('SIGINT', () => this.#interrupt(lines));
    out.write(`Connected to ${this.database.url}. Type help for help, Ctrl-D to exit.\n`);
    this.#prompt(lines);
    for await (const line of lines) {
      if (await this.#take(line)) break;
      this.#prompt(lines);
    }
    lines.close();
    out.write('\n');
    await saveHistory(file, typed, terminal);
  }

  /** Script mode. */
  async script(): Promise<void> {
    const { terminal, exitWith } = this.tools;
    const lines = createInterface({ input: terminal.in.stream, crlfDelay: Infinity });
    let number = 0;
    for await (const line of lines) {
      number++;
      const outcome = await this.#take(line);
      if (outcome === undefined) continue;
      lines.close();
      if (outcome === 'left') return;
      terminal.err.write(terminal.json ? '' : `${programName()}: stopped at line ${number}\n`);
      exitWith(outcome);
      return;
    }
    if (this.#pending.trim() === '') return;
    const { UsageError } = await import('@millrace/kit/errors');
    throw new UsageError('The input ends inside a bracket or a quote. Close it.');
  }

  #prompt(lines: Interface): void {
    lines.setPrompt(this.#pending === '' ? 'db> ' : '... ');
    lines.prompt();
  }

  /** Ctrl-C cancels the running command, or clears the line. */
  #interrupt(lines: Interface): void {
    if (this.#running) {
      this.#running.abort();
      return;
    }
    this.#pending = '';
    this.tools.terminal.out.write('\n');
    lines.write(null, { ctrl: true, name: 'e' });
    lines.write(null, { ctrl: true, name: 'u' });
    this.#prompt(lines);
  }

  /** Undefined to continue, `left`, or the exit code of a script's failed line. */
  async #take(line: string): Promise<number | 'left' | undefined> {
    const text = this.#pending === '' ? line : `${this.#pending}\n${line}`;
    const { words, isOpen } = tokenize(text);
    if (isOpen) {
      this.#pending = text;
      return undefined;
    }
    this.#pending = '';
    const args = words.map(unquote);
    const [name] = args;
    if (name === undefined || name.startsWith('#')) return undefined;
    if (name === 'exit' || name === 'quit') return 'left';
    const isShow = name === 'show' && args[1] === 'collections';
    const code = await this.#carryOut(isShow ? ['collection', 'list', ...args.slice(2)] : args);
    return code === 0 || this.tools.terminal.in.isScreen ? undefined : code;
  }

  async #carryOut(args: readonly string[]): Promise<number> {
    const running = new AbortController();
    this.#running = running;
    const isJson = this.tools.terminal.json || args.includes('--json');
    const terminal = { ...this.tools.terminal, in: this.tools.terminal.in, json: isJson };
    let exitCode = 0;
    const tools: DatabaseTools = {
      ...this.tools,
      terminal,
      lifecycle: { ...this.tools.lifecycle, interrupted: running.signal },
      exitWith: (code) => (exitCode = code),
      database: this.database,
    };
    try {
      await Promise.race([this.#parse(args, tools), aborted(running.signal)]);
      return exitCode;
    } catch (error) {
      if (error instanceof CommanderError && error.exitCode === 0) return 0;
      if (running.signal.aborted) return 1;
      return await reportFailure(await inShellWords(error), terminal);
    } finally {
      this.#running = undefined;
      this.#completer.forget();
    }
  }

  async #parse(args: readonly string[], tools: DatabaseTools): Promise<void> {
    const commands = this.#commands(tools);
    const isHelp = args[0] === 'help';
    const argv = isHelp ? [...args.slice(1), '--help'] : args;
    await commands.parseAsync(argv, { from: 'user' });
  }

  #commands(tools: DatabaseTools): CtlCommand {
    const { out, err } = tools.terminal;
    const commands = new CtlCommand('db')
      .description('Commands of the shell. A line with an open bracket continues on the next one.')
      .usage('<command> [options]')
      .helpOption('-h, --help', 'Show help')
      .option('--json', 'Print JSON')
      .exitOverride()
      .configureOutput({
        writeOut: (text) => out.write(text),
        writeErr: (text) => err.write(text),
        getOutHelpWidth: () => Math.min(Number.isFinite(out.columns) ? out.columns : 80, 100),
      });
    this.addCommands(commands, tools);
    return commands;
  }
}

/** The parser's hint is for the command line, not the shell. */
async function inShellWords(error: unknown): Promise<unknown> {
  if (!(error instanceof Mistake)) return error;
  const { UsageError } = await import('@millrace/kit/errors');
  const about = error.path.replace(/^db ?/, '');
  const end = /[.?]$/.test(error.message) ? '' : '.';
  return new UsageError(`${error.message}${end} Type help ${about}`.trimEnd(), { cause: error });
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

const maxLines = 1000;

/** Lines typed in earlier shells, newest first, as readline expects. */
async function readHistory(file: string): Promise<string[]> {
  const text = (await whenThere(readFile(file, 'utf8'))) ?? '';
  return text
    .split('\n')
    .filter((line) => line !== '')
    .toReversed();
}

/** Saves the lines, readable only by the owner, because they may contain private data. */
async function saveHistory(
  file: string,
  lines: readonly string[],
  { err }: Terminal,
): Promise<void> {
  const text = lines
    .slice(0, maxLines)
    .toReversed()
    .map((line) => `${line}\n`)
    .join('');
  try {
    await mkdir(dirname(file), { recursive: true, mode: 0o700 });
    await writeFile(`${file}.new`, text, { mode: 0o600 });
    await rename(`${file}.new`, file);
  } catch (error) {
    // Not worth failing for: the shell has done its work.
    err.write(`${programName()}: failed to save the history: ${messageOf(error)}\n`);
  }
}
