import type { CtlCommand } from './command.js';
import { addCommand, type CodeCommand, type Group, type Server } from './declared.js';
import { addServe, type ServeCommand } from './serve-command.js';
import type { CommandTree, Tools } from './tools.js';

/** A first word of the command line: a command or a group, whose summary is in the registry. */
export type TopCommand = (Omit<CodeCommand, 'summary'> | Omit<Group, 'summary'>) & {
  readonly server?: (tools: Tools) => Server;
  readonly serve?: ServeCommand;
};

/** A first word, whose file is loaded when the word is used. */
export interface GroupEntry {
  readonly name: string;
  readonly summary: string;
  load(): Promise<{ readonly top: Readonly<Record<string, TopCommand>> }>;
}

/** The root command with the name of every group; groups are filled in on demand. */
export class Groups implements CommandTree {
  readonly #entries: ReadonlyMap<string, GroupEntry>;
  readonly #filled = new Set<string>();
  readonly #tools: Tools;

  constructor(
    readonly root: CtlCommand,
    registry: readonly GroupEntry[],
    tools: Omit<Tools, 'groups'>,
  ) {
    this.#entries = new Map(registry.map((entry) => [entry.name, entry]));
    this.#tools = { ...tools, groups: this };
    for (const { name, summary } of registry) root.command(name).summary(summary);
  }

  /** Loads the group of that name; the parser reports an unknown name. */
  async fill(name: string): Promise<void> {
    const entry = this.#entries.get(name);
    const command = this.root.subcommand(name);
    if (!entry || !command || this.#filled.has(name)) return;
    this.#filled.add(name);
    const { serve, server, ...declared } = (await entry.load()).top[name]!;
    if (serve) await addServe(command, this.#tools, serve);
    addCommand(
      command,
      { summary: entry.summary, ...declared },
      this.#tools,
      server?.(this.#tools) ?? { connect: null },
    );
  }

  async fillAll(): Promise<void> {
    for (const name of this.#entries.keys()) await this.fill(name);
  }
}
