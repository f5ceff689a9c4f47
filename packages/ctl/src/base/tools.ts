import type { CtlCommand, Presenter } from './command.js';
import type { Lifecycle } from './lifecycle.js';
import type { Terminal } from './terminal.js';

/** What a command gets to work with. */
export interface Tools {
  readonly terminal: Terminal;
  readonly lifecycle: Lifecycle;
  readonly groups: CommandTree;
  /** The words of the command line without options: `db`, `serve`. */
  readonly words: readonly string[];
  /** For `CtlCommand.shown`. */
  readonly present: Presenter;
  /** Sets the exit code of a command that ran but has bad news. A thrown error sets its own. */
  exitWith(code: number): void;
}

/** All commands; each group is loaded on demand. */
export interface CommandTree {
  readonly root: CtlCommand;
  fill(name: string): Promise<void>;
  fillAll(): Promise<void>;
}
