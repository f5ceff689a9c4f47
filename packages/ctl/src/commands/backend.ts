import type { TopCommand } from '../base/groups.js';
import * as daemonLists from '@millrace/contract/lists/daemon';
import type { Commands } from '../base/declared.js';
import { daemonServer } from '../daemon/server.js';

const commands: Commands = {
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
    run: async () => (await import('../backend/backends.js')).listBackends,
  },
  rescan: {
    summary: 'Scan for installed backends again',
    description:
      'Scan the search path of the daemon for every known command line and for a local ' +
      'model. Tiers, the default and what is enabled do not change.',
    options: [['--acp', 'Also run --help of programs that may speak ACP themselves']],
    examples: [['ctl backend rescan', 'after installing or removing a command line']],
    run: async () => (await import('../backend/backends.js')).rescanBackends,
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
    run: async () => (await import('../backend/testing.js')).testBackend,
  },
  ...daemonLists.backendCommands,
};

export const top: Readonly<Record<string, TopCommand>> = {
  backend: {
    server: daemonServer,
    description:
      'Show and change the registry of coding-agent backends: which are installed, how ' +
      'they are billed, which is the default. With --json, commands print the response of ' +
      'the REST API.',
    examples: [
      ['ctl backend list', 'what is installed'],
      ['ctl backend tier claude subscription', 'set how one is billed'],
      ['ctl backend default claude', 'set the default'],
    ],
    commands: commands,
  },
};
