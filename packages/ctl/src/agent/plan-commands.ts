import type { Commands } from '../base/declared.js';

const planArgument = ['<plan>', 'plan title, id or id prefix'] as const;
const taskArgument = ['<task>', 'key of the task'] as const;
const asOption = ['--as <name>', 'Name of the claimant (default: the caller)'] as const;

/** The commands of `ctl agent` for plans. */
export const planCommands: Commands = {
  plan: {
    summary: 'Run a plan of agents from a file',
    description:
      'Submit a plan from a YAML or JSON file and follow it to its end: a title, a repo, and ' +
      'tasks with a key, a prompt and the keys they depend on. Tasks can have verify, race, ' +
      'review, feedback and merge. A relative repo is relative to the file. Errors name the line.',
    arguments: [['<file>', 'the file; - for stdin']],
    options: [['--detach', 'Return as soon as the plan is submitted']],
    examples: [
      ['ctl agent plan upload.yaml', 'until its end'],
      ['ctl agent plan upload.yaml --detach', 'in the background'],
    ],
    exitCodes: { 0: 'done; with --detach, submitted', 1: 'a task failed, or failure' },
    run: async () => (await import('./plans.js')).runPlan,
  },
  'plan-show': {
    summary: 'List plans, or show one with its tasks',
    description:
      'List plans, newest first. With a plan, show its tasks with their status, checks, agents ' +
      'and branches, the results of races, and why tasks failed.',
    arguments: [['[plan]', 'plan title, id or id prefix']],
    examples: [
      ['ctl agent plan-show', 'all of them'],
      ['ctl agent plan-show upload', 'one, with its tasks'],
    ],
    exitCodes: { 1: 'no such plan, or failure' },
    isView: true,
    run: async () => (await import('./plans.js')).showPlans,
  },
  'plan-cancel': {
    summary: 'Cancel a plan',
    description: 'Stop the agents of a plan and start no more. Branches and worktrees stay.',
    arguments: [planArgument],
    examples: [['ctl agent plan-cancel upload', 'enough']],
    exitCodes: { 1: 'no such plan, it has ended, or failure' },
    run: async () => (await import('./plans.js')).cancelPlan,
  },
  pick: {
    summary: 'Pick the winner of a race',
    description:
      'Continue with the work of one agent of a race. The worktrees of the others are removed; ' +
      'their branches stay for 7 days.',
    arguments: [planArgument, taskArgument, ['<agent>', 'agent name, id or id prefix']],
    examples: [['ctl agent pick upload retry 01K9ZQ4M', 'this one']],
    exitCodes: { 1: 'no such plan or task, it waits for no pick, or failure' },
    run: async () => (await import('./plans.js')).pickSession,
  },
  claim: {
    summary: 'Claim a task of a plan',
    description: 'Take a task that is ready, so that nobody else does it.',
    arguments: [planArgument, taskArgument],
    options: [asOption],
    examples: [['ctl agent claim upload screenshots', 'I do it']],
    exitCodes: { 1: 'no such plan or task, it is not ready, or failure' },
    run: async () => (await import('./plans.js')).claimTask,
  },
  complete: {
    summary: 'Complete a task of a plan',
    description: 'End a task that is left to people. Tasks that depend on it start.',
    arguments: [planArgument, taskArgument],
    options: [
      ['--result <text>', 'What was done, for the tasks that depend on it'],
      ['--branch <name>', 'The branch with the work'],
      ['--failed', 'It could not be done'],
      asOption,
    ],
    examples: [['ctl agent complete upload screenshots --result "In docs/images"', 'done']],
    exitCodes: { 1: 'no such plan or task, another has claimed it, or failure' },
    run: async () => (await import('./plans.js')).completeTask,
  },
};
