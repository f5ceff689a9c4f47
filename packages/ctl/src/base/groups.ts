import type { CtlCommand } from './command.js';
import type { CommandTree, Tools } from './tools.js';

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
    await (await entry.load()).build(command, this.#tools);
  }

  async fillAll(): Promise<void> {
    for (const name of this.#entries.keys()) await this.fill(name);
  }
}

/** A command group, whose file is loaded when the group is used. */
export interface GroupEntry {
  readonly name: string;
  readonly summary: string;
  load(): Promise<GroupModule>;
}

interface GroupModule {
  build(command: CtlCommand, tools: Tools): void | Promise<void>;
}
