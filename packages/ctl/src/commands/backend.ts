import * as daemonLists from '@millrace/contract/lists/daemon';
import type { CtlCommand } from '../base/command.js';
import { addCommands, type Commands } from '../base/declared.js';
import type { TestFlags } from '../backend/testing.js';
import type { Tools } from '../base/tools.js';
import type { DaemonFlags } from '../daemon/api.js';
import { daemonServer } from '../daemon/server.js';

export function build(backend: CtlCommand, tools: Tools): void {
  backend
    .description(
      'Show and change the registry of coding-agent backends: which are installed, how ' +
        'they are billed, which is the default. With --json, commands print the response of ' +
        'the REST API.',
    )
    .example('ctl backend list', 'what is installed')
    .example('ctl backend tier claude subscription', 'set how one is billed')
    .example('ctl backend default claude', 'set the default');
  addCommands(backend, commands(tools), tools, daemonServer(tools));
}

const commands = (tools: Tools): Commands => ({
  list: {
    alias: 'ls',
    summary: 'List the backends and the thinking mode',
    description:
      'List every known backend, installed or not: how it is billed, whether it is the ' +
      'default, whether it is enabled, and until when it is skipped because of a rate ' +
      'limit. Then the thinking mode.',
    examples: [
      ['ctl backend list', 'as a table'],
      ['ctl backend ls --json', 'for scripts'],
    ],
    isView: true,
    run: async (flags: DaemonFlags) =>
      (await import('../backend/backends.js')).listBackends(flags, tools),
  },
  rescan: {
    summary: 'Scan for installed backends again',
    description:
      'Scan the search path of the daemon for every known command line and for a local ' +
      'model. Tiers, the default and what is enabled do not change.',
    options: [['--acp', 'Also run --help of programs that may speak ACP themselves']],
    examples: [['ctl backend rescan', 'after installing or removing a command line']],
    run: async (flags: DaemonFlags & { acp?: boolean }) =>
      (await import('../backend/backends.js')).rescanBackends(flags, tools),
  },
  test: {
    summary: 'Run one prompt on a backend, step by step',
    description:
      'Start an agent in an empty directory, give it a prompt, answer its questions with ' +
      'their first option, wait for its answer, stop it and remove it. Prints what each step ' +
      'saw: start, prompt, answer, stop. It spends what a short prompt costs.',
    arguments: [['<id>', 'the backend']],
    options: [
      ['--driver <driver>', 'How to run it', { choices: ['tmux', 'headless', 'acp'] }],
      ['--prompt <text>', 'The prompt (default: Reply with the word ready.)'],
      ['--timeout <duration>', 'How long each step may take (default: 2m)'],
    ],
    examples: [
      ['ctl backend test claude', 'with its default driver'],
      ['ctl backend test mycli --driver tmux', 'try the rules for your own command line'],
    ],
    exitCodes: { 1: 'a step failed; the last line names it' },
    run: async (id: string, flags: TestFlags) => {
      const { testBackend } = await import('../backend/testing.js');
      if (!(await testBackend(id, flags, tools))) tools.exitWith(1);
    },
  },
  ...daemonLists.backendCommands,
});
