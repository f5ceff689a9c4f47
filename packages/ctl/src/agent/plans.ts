import { dirname, resolve } from 'node:path';
import type { DaemonSchema } from '@millrace/contract/daemon';
import * as daemonLists from '@millrace/contract/lists/daemon';
import { systemClock } from '@millrace/kit/clock';
import { Refusal, UsageError } from '@millrace/kit/errors';
import { asTyped } from '../base/command-name.js';
import { harmless } from '../base/exchange.js';
import { cellOf, listText } from '../base/list-text.js';
import { rest } from '../base/rest.js';
import type { Flags, Tools } from '../base/tools.js';
import { daemonApi, type DaemonApi, type DaemonFlags } from '../daemon/api.js';
import { readConfigFile, type ConfigFile } from '../queue/config-file.js';
import { dollars } from '../render/figures.js';
import { renderTable, renderFacts, type Cell, type Sheet } from '../render/table.js';
import { printable, printableLines } from '../render/text.js';
import { chosen } from './choosing.js';
import { findSession } from './find-session.js';

type Plan = DaemonSchema<'Plan'>;
type PlanTask = DaemonSchema<'PlanTask'>;

export interface PlanFlags extends DaemonFlags {
  detach?: boolean;
}

export type CompleteFlags = DaemonFlags & Flags<'result branch as', 'failed'>;

const pollMs = 500;

/** Submits a plan and follows it to its end. */
export async function runPlan(file: string, flags: PlanFlags, tools: Tools): Promise<void> {
  const source = await readConfigFile(file, tools.terminal, 'title: ... and tasks: [...]');
  const api = await daemonApi(flags, tools);
  const plan = await api
    .call('createPlan', { body: definitionOf(source, file) })
    .catch((error: unknown) => {
      throw error instanceof Refusal ? explained(error, source) : error;
    });
  if (flags.detach === true) return show(plan, tools);
  const ended = await follow(api, plan, tools);
  show(ended, tools);
  if (ended.status !== 'done') tools.exitWith(1);
}

/** Relative repositories are relative to the file, because the daemon runs elsewhere. */
function definitionOf({ config }: ConfigFile, file: string): DaemonSchema<'PlanDefinition'> {
  const from = file === '-' ? '.' : dirname(file);
  const placed = (value: unknown): unknown => {
    if (typeof value !== 'object' || value === null) return value;
    const { repo } = value as { repo?: unknown };
    return typeof repo === 'string' && repo !== ''
      ? { ...value, repo: resolve(from, repo) }
      : value;
  };
  const { tasks } = config;
  const whole = placed(config) as object;
  // The daemon validates it against the contract and names the wrong places.
  return (
    Array.isArray(tasks) ? { ...whole, tasks: tasks.map(placed) } : whole
  ) as DaemonSchema<'PlanDefinition'>;
}

/** A wrong file is wrong usage, with the lines of its faults. */
function explained(refusal: Refusal, source: ConfigFile): Error {
  const { errors = [] } = refusal.extra;
  if (refusal.code !== 'INVALID_REQUEST' || errors.length === 0) return refusal;
  const faults = errors.map(
    ({ pointer, message }) =>
      `${source.name}:${source.lineOf(pointer)}: ${harmless(pointer)} ${harmless(message)}`,
  );
  return new UsageError(`${faults.join('\n')}\nNothing was started.`);
}

/** Prints each change of a task as it happens; a table is drawn at the end. */
async function follow(api: DaemonApi, first: Plan, { terminal, lifecycle }: Tools): Promise<Plan> {
  const { out, json } = terminal;
  const known = new Map<string, string>();
  if (!json) out.write(`Plan ${printable(first.title)} (${first.id})\n`);
  for (let plan = first; ;) {
    for (const task of plan.tasks) {
      const state = `${task.status} ${task.waiting_for ?? ''}`.trim();
      if (known.get(task.key) === state) continue;
      known.set(task.key, state);
      if (!json && task.status !== 'pending') out.write(`${changeText(plan, task)}\n`);
    }
    if (plan.status !== 'running') return plan;
    await rest(pollMs, lifecycle.interrupted);
    plan = await api.call('getPlan', { path: { id: first.id } });
  }
}

function changeText({ id }: Plan, { key, status, waiting_for: what, sessions }: PlanTask): string {
  const hints: Readonly<Record<string, string>> = {
    pick: `pick one: ctl agent pick ${id} ${key} AGENT`,
    merge: 'answer whether to merge it: ctl agent questions',
    answer: `an agent has a question: ctl agent questions`,
    feedback: 'CI or the pull request',
    completion: `ctl agent complete ${id} ${key}`,
  };
  if (status === 'ready') return asTyped(`${key}: ready, for you: ctl agent complete ${id} ${key}`);
  if (status === 'waiting') return asTyped(`${key}: waiting, ${hints[what ?? ''] ?? what ?? ''}`);
  const agent = status === 'running' ? sessions.at(-1) : undefined;
  return `${key}: ${status}${agent === undefined ? '' : ` (${agent})`}`;
}

/** All plans, or one with its tasks. */
export async function showPlans(
  words: string | undefined,
  flags: DaemonFlags,
  tools: Tools,
): Promise<void> {
  if (words !== undefined) return show((await found(words, flags, tools)).plan, tools);
  const api = await daemonApi(flags, tools);
  const { plans } = await api.call('listPlans');
  tools.terminal.show({ plans }, (out) =>
    listText(daemonLists.plans, plans, systemClock.now(), out),
  );
}

async function found(words: string, flags: DaemonFlags, tools: Tools) {
  const api = await daemonApi(flags, tools);
  const { plans } = await api.call('listPlans');
  const named = plans.map((plan) => ({ ...plan, name: plan.title }));
  const wording = { kind: 'plan', code: 'PLAN_NOT_FOUND', list: 'ctl agent plan-show' };
  const { name: _, ...plan } = chosen(named, words, wording);
  return { api, plan };
}

export async function cancelPlan(words: string, flags: DaemonFlags, tools: Tools): Promise<void> {
  const { api, plan } = await found(words, flags, tools);
  show(await api.call('cancelPlan', { path: { id: plan.id } }), tools);
}

export async function pickSession(
  words: string,
  key: string,
  agent: string,
  flags: DaemonFlags,
  tools: Tools,
): Promise<void> {
  const { api, plan } = await found(words, flags, tools);
  const { id } = await findSession(api, agent);
  const path = { id: plan.id, key };
  show(await api.call('pickSession', { path, body: { session_id: id } }), tools);
}

export async function claimTask(
  words: string,
  key: string,
  { as, ...flags }: DaemonFlags & { as?: string },
  tools: Tools,
): Promise<void> {
  const { api, plan } = await found(words, flags, tools);
  const body = as === undefined ? {} : { by: as };
  show(await api.call('claimPlanTask', { path: { id: plan.id, key }, body }), tools);
}

export async function completeTask(
  words: string,
  key: string,
  { result, branch, failed, as, ...flags }: CompleteFlags,
  tools: Tools,
): Promise<void> {
  const { api, plan } = await found(words, flags, tools);
  const body = {
    ...(result !== undefined && { result }),
    ...(branch !== undefined && { branch }),
    ...(failed === true && { failed }),
    ...(as !== undefined && { by: as }),
  };
  show(await api.call('completePlanTask', { path: { id: plan.id, key }, body }), tools);
}

function show(plan: Plan, { terminal }: Tools): void {
  terminal.show(plan, (out) => planScreen(plan, systemClock.now(), out));
}

/** A plan with its tasks, and why those failed that did. */
export function planScreen(plan: Plan, now: number, sheet: Sheet): string {
  const facts: Cell[][] = [
    ['plan', `${plan.title} (${plan.id})`],
    ['status', cellOf(daemonLists.planStatus(plan), now, sheet)],
    ['repository', plan.repo ?? 'none'],
  ];
  const head = renderFacts(facts, sheet);
  const rows = plan.tasks.map((task): Cell[] => [
    task.key,
    cellOf(daemonLists.planStatus(task), now, sheet),
    task.verify === null ? '-' : task.verify.passed ? 'passed' : 'failed',
    String(task.sessions.length),
    task.branch ?? '-',
    (task.depends_on ?? []).join(', ') || '-',
  ]);
  const titles = ['TASK', 'STATUS', 'CHECKS', 'AGENTS', 'BRANCH', 'AFTER'];
  const table = renderTable(titles, rows, sheet);
  const races = plan.tasks.flatMap(({ key, race = [] }) =>
    race.map(({ session_id, backend, status, verify, diff, exact_usd: usd, picked, error }) => {
      const checks =
        verify === null ? 'no checks' : `checks ${verify.passed ? 'passed' : 'failed'}`;
      const size = diff
        ? `${diff.files} files +${diff.additions} -${diff.deletions}`
        : 'no changes';
      const price = usd === null ? '' : `, ${dollars(usd)}`;
      const mark = picked ? ', picked' : '';
      const name = `${key}: ${session_id ?? '-'} ${backend} ${status}`;
      if (error) return `${name}: ${error.split('\n', 1)[0]}`;
      return `${name}, ${checks}, ${size}${price}${mark}`;
    }),
  );
  const failures = plan.tasks.flatMap(({ key, status, result }) =>
    status === 'failed' ? [`${key} failed: ${result ?? 'for an unknown reason'}`] : [],
  );
  return `${head}\n${table}${[...races, ...failures].map((line) => `${printableLines(line)}\n`).join('')}`;
}
