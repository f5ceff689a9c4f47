import type { CtlCommand } from './command.js';
import type { Tools } from './tools.js';

/** A command group, whose file is loaded when the group is used. */
export interface GroupEntry {
  readonly name: string;
  readonly summary: string;
  load(): Promise<GroupModule>;
}

interface GroupModule {
  build(command: CtlCommand, tools: Tools): void | Promise<void>;
}
