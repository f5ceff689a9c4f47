import { Readable } from 'node:stream';
import { CtlCommand } from './base/command.js';
import { Groups } from './base/groups.js';
import { openTerminal } from './base/terminal.js';
import type { Lifecycle } from './base/lifecycle.js';
import { registry } from './registry.js';
import { run } from './run.js';
import type { CommandShape } from './base/shape.js';

const lifecycle: Lifecycle = {
  interrupted: new AbortController().signal,
  serve: (work) => work(Promise.resolve()),
  onInterrupt: () => () => undefined,
  handOver: (work) => work(),
};

interface Settings {
  readonly env?: Readonly<Record<string, string>>;
  /** Whether stdout and stderr are a terminal. */
  readonly isTTY?: boolean;
}

/** Runs a command line in this process, with a home that does not exist. */
export async function ctl(args: readonly string[], { env, isTTY = false }: Settings = {}) {
  let [out, err] = ['', ''];
  const outside = {
    stdin: Readable.from([]) as never,
    stdout: { write: (text: string | Uint8Array) => (out += text.toString()), isTTY },
    stderr: { write: (text: string | Uint8Array) => (err += text.toString()), isTTY },
    env: { HOME: '/nonexistent', PATH: process.env['PATH'] ?? '', ...env },
  };
  const code = await run(args, outside, lifecycle);
  return { code, out, err };
}

function flat(command: CommandShape): CommandShape[] {
  return [command, ...command.commands.flatMap(flat)];
}

/** The words of a command as typed, without the program. */
export function wordsOf({ path }: { readonly path: string }): string[] {
  return path.split(' ').slice(1);
}

/** Every command as the help describes it. */
export async function describedCommands(): Promise<CommandShape[]> {
  const root = JSON.parse((await ctl(['--help', '--json'])).out) as CommandShape;
  return root.commands.flatMap(flat);
}

/** Every command as the parser has it. */
export async function parsedCommands(): Promise<CtlCommand[]> {
  const outside = { stdout: { write: () => true }, stderr: { write: () => true }, env: {} };
  const tools = {
    terminal: openTerminal([], outside),
    lifecycle,
    words: [],
    args: [],
    present: async (_flags: object, show: () => Promise<void>) => show(),
    exitWith: () => undefined,
  };
  const groups = new Groups(new CtlCommand('ctl'), registry, tools);
  await groups.fillAll();
  const all = (command: CtlCommand): CtlCommand[] => [command, ...command.subcommands.flatMap(all)];
  return groups.root.subcommands.flatMap(all);
}
