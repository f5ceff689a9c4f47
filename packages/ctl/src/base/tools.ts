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
  /** The command line as it was given. */
  readonly args: readonly string[];
  /** For `CtlCommand.shown`. */
  readonly present: Presenter;
  /** Sets the exit code of a command that ran but has bad news. A thrown error sets its own. */
  exitWith(code: number): void;
}

type Words<Text extends string> = Text extends `${infer First} ${infer Rest}`
  ? First | Words<Rest>
  : Text;

/** The flags of a command by their names: those with a value, then switches. */
export type Flags<Values extends string, Switches extends string = never> = Partial<
  Record<Words<Values>, string> & Record<Words<Switches>, boolean>
>;

/** All commands; each group is loaded on demand. */
export interface CommandTree {
  readonly root: CtlCommand;
  fill(name: string): Promise<void>;
  fillAll(): Promise<void>;
}
