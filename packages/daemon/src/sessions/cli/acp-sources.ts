import type { Backend } from '../../core/backend.js';
import { localId } from '../../core/backend.js';
import { findProgram } from '../../registry/programs.js';
import { cliOf, type ExtraCli } from './command-lines.js';
import type { OfferedFlags } from '../../registry/run-program.js';

/** How a backend supports the Agent Client Protocol. */
export interface AcpSource {
  via: 'native' | 'adapter';
  /** The program and its arguments. */
  command: string[];
}

export interface AcpSourcesParts {
  flags: OfferedFlags;
  /** Search path of programs: the value of PATH. */
  searchPath: string | undefined;
  extra: readonly ExtraCli[];
  /** `agents.adapters`: commands by backend. */
  adapters: Readonly<Record<string, string | readonly string[]>>;
  variablesFor: (backend: string) => Record<string, string>;
}

/** Arguments that start the protocol; used only if `--help` lists them. */
const native: Readonly<Record<string, readonly string[]>> = {
  gemini: ['--acp', '--experimental-acp'],
  qwen: ['--acp', '--experimental-acp'],
  opencode: ['acp'],
  goose: ['acp'],
  kimi: ['--acp'],
  auggie: ['--acp'],
};

/** npm programs that implement the protocol for a command line. */
const adapters: Readonly<Record<string, readonly string[]>> = {
  claude: ['claude-agent-acp', 'claude-code-acp'],
  codex: ['codex-acp'],
};

/** Finds how backends support the Agent Client Protocol; nothing is ever downloaded. */
export class AcpSources {
  constructor(private readonly parts: AcpSourcesParts) {}

  /**
   * May run the program for its `--help`. When the driver was requested by name, a program that is
   * too slow to answer counts as supporting the protocol.
   */
  async find(
    { id, installed, binary_path: file }: Backend,
    { isRequested = false } = {},
  ): Promise<AcpSource | undefined> {
    if (!installed || id === localId) return undefined;
    const cli = cliOf(id, this.parts.extra);
    const configured = await this.#configured(id);
    return configured ?? (await this.#native(id, cli, file, isRequested)) ?? this.#adapter(cli);
  }

  /** A configured adapter or one on the search path; runs nothing. */
  async adapterOf(id: string): Promise<AcpSource | undefined> {
    return (await this.#configured(id)) ?? this.#adapter(cliOf(id, this.parts.extra));
  }

  async #configured(id: string): Promise<AcpSource | undefined> {
    const { adapters: configured, searchPath } = this.parts;
    if (!Object.hasOwn(configured, id)) return undefined;
    const [program = '', ...args] = [configured[id]!].flat();
    const file = await findProgram(program, searchPath);
    return file === undefined ? undefined : { via: 'adapter', command: [file, ...args] };
  }

  async #native(
    id: string,
    cli: string,
    file: string,
    isRequested: boolean,
  ): Promise<AcpSource | undefined> {
    const words = Object.hasOwn(native, cli) ? native[cli]! : [];
    if (words.length === 0) return undefined;
    const { flags } = this.parts;
    const variables = this.parts.variablesFor(id);
    const offered = await flags.among(file, words, variables);
    const listed = words.find((each) => offered.has(each));
    const isAssumed = !listed && isRequested && !(await flags.answers(file, variables));
    const word = isAssumed ? words[0] : listed;
    return word === undefined ? undefined : { via: 'native', command: [file, word] };
  }

  async #adapter(cli: string): Promise<AcpSource | undefined> {
    for (const name of Object.hasOwn(adapters, cli) ? adapters[cli]! : []) {
      const file = await findProgram(name, this.parts.searchPath);
      if (file !== undefined) return { via: 'adapter', command: [file] };
    }
    return undefined;
  }
}
