import type { CtlCommand } from './command.js';
import type { Lifecycle } from './lifecycle.js';
import type { Terminal } from './terminal.js';

/** What a command is given to work with. */
export interface Tools {
  readonly terminal: Terminal;
  readonly lifecycle: Lifecycle;
  readonly groups: CommandTree;
  /** The plain words of the command line: `db`, `serve`. */
  readonly words: readonly string[];
  /** For a command that ran well and has bad news. A thrown error sets its own. */
  exitWith(code: number): void;
}

/** All commands; each group is loaded only when somebody needs it. */
export interface CommandTree {
  readonly root: CtlCommand;
  fill(name: string): Promise<void>;
  fillAll(): Promise<void>;
}
