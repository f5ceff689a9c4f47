import type { DaemonSchema } from '@millrace/contract/daemon';
import type { FieldError } from '@millrace/kit/errors';
import { fail } from '../core/api.js';
import { graphFaults, invalidFields, meant } from '../core/dependency-graph.js';
import { localId } from '../core/backend.js';
import { git, type GitParts } from '../git/run-git.js';
import type { Backends } from '../registry/backends.js';
import { repoProblem } from '../sessions/worktrees.js';

export type Plan = DaemonSchema<'Plan'>;
export type PlanTask = DaemonSchema<'PlanTask'>;
export type PlanCheck = DaemonSchema<'PlanCheck'>;
export type PlanDefinition = DaemonSchema<'PlanDefinition'>;
export type TaskDefinition = DaemonSchema<'PlanTaskDefinition'>;
export type RaceEntry = Required<DaemonSchema<'RaceEntry'>>;

/** A plan as it is stored: every optional member of the API is there. */
export type StoredTask = Required<Omit<PlanTask, 'race'>> & { race: RaceEntry[] };
export type StoredPlan = Required<Omit<Plan, 'tasks'>> & { tasks: StoredTask[] };

export interface CheckParts {
  backends: Pick<Backends, 'read'>;
  git: GitParts;
}

/** Names of whichever backend is free. */
const anyBackend = new Set(['any', 'any free']);
const maxDefinitionBytes = 1_310_720;

/** Refuses a plan that cannot run as written, with the place of each fault. */
export async function checkPlan(parts: CheckParts, plan: PlanDefinition): Promise<void> {
  const items = plan.tasks.map(({ key, depends_on }) => ({ id: key, depends_on }));
  const errors = [
    ...graphFaults(items, { list: 'tasks', item: 'task', id: 'key' }),
    ...plan.tasks.flatMap((task, index) => contradictions(task, plan, `/tasks/${index}`)),
    ...(await backendFaults(parts, plan)),
    ...(await repoFaults(parts, plan)),
  ];
  if (errors.length > 0) throw invalidFields(errors);
  const bytes = Buffer.byteLength(JSON.stringify(plan));
  if (bytes <= maxDefinitionBytes) return;
  throw fail(
    'PAYLOAD_TOO_LARGE',
    `The plan has ${bytes} bytes; the maximum is ${maxDefinitionBytes}. Shorten the prompts or ` +
      'split the plan.',
  );
}

/** What a limited token may not put into a plan: commands that the daemon runs, and merges. */
export function checkAgentPlan({ tasks }: PlanDefinition): void {
  const refused = tasks.findIndex(({ verify, merge }) => verify !== undefined || merge === 'auto');
  if (refused === -1) return;
  const field = tasks[refused]!.verify === undefined ? 'merge: auto' : 'verify';
  throw fail(
    'FORBIDDEN',
    `/tasks/${refused}: a plan that an agent makes with its own token cannot have \`${field}\`, ` +
      'which acts outside of its sandbox. The setting agents.token_rights: full lifts that.',
  );
}

function contradictions(task: TaskDefinition, plan: PlanDefinition, at: string): FieldError[] {
  const { assignee, prompt, backend, race } = task;
  const errors: FieldError[] = [];
  const refuse = (field: string, message: string) =>
    errors.push({ pointer: `${at}/${field}`, message });
  const isPerson = assignee === 'person';
  if (!isPerson && prompt === undefined) refuse('prompt', 'is missing: write what to do');
  if (race !== undefined && backend !== undefined) {
    refuse('backend', 'has no effect with `race`: remove one of the two');
  }
  for (const field of ['race', 'review', 'feedback', 'merge', 'verify'] as const) {
    if (task[field] === undefined || (field === 'merge' && task.merge === 'never')) continue;
    if (isPerson) refuse(field, 'is for tasks of agents; this one is left to a person');
    else if (field !== 'verify' && (task.repo ?? plan.repo) === undefined) {
      refuse(field, 'needs a git repository: name one in `repo`');
    }
  }
  return errors;
}

/** The backends that a task names, with their places. */
function backendsIn({ backend, race, review }: TaskDefinition, at: string): [string, string][] {
  const { backends = [], judge } = raceOf(race) ?? {};
  const list = Array.isArray(race) ? 'race' : 'race/backends';
  return [
    ...(backend === undefined ? [] : [[`${at}/backend`, backend] as [string, string]]),
    ...backends.map((id, i): [string, string] => [`${at}/${list}/${i}`, id]),
    ...(judge === undefined ? [] : [[`${at}/race/judge`, judge] as [string, string]]),
    ...(review === undefined ? [] : [[`${at}/review/by`, review.by] as [string, string]]),
  ];
}

async function backendFaults(
  { backends }: CheckParts,
  { tasks }: PlanDefinition,
): Promise<FieldError[]> {
  const rows = new Map((await backends.read()).backends.map((row) => [row.id, row]));
  const known = [...rows.keys()].filter((id) => id !== localId);
  const named = tasks.flatMap((task, index) => backendsIn(task, `/tasks/${index}`));
  return named.flatMap(([pointer, id]) => {
    if (anyBackend.has(id)) return [];
    const row = rows.get(id);
    if (!row || id === localId) {
      const message = `names the backend "${id}", which does not exist${meant(id, known)}`;
      return [{ pointer, message }];
    }
    if (!row.installed) {
      const next = 'install it and run `ctl backend rescan`';
      return [{ pointer, message: `names the backend "${id}", which is not installed: ${next}` }];
    }
    const next = `run \`ctl backend enable ${id}\` first`;
    return row.enabled
      ? []
      : [{ pointer, message: `names the backend "${id}", which is disabled: ${next}` }];
  });
}

async function repoFaults({ git: parts }: CheckParts, plan: PlanDefinition) {
  const places: [string, string | undefined][] = [
    ['/repo', plan.repo],
    ...plan.tasks.map(({ repo }, i): [string, string | undefined] => [`/tasks/${i}/repo`, repo]),
  ];
  const errors: FieldError[] = [];
  const good = new Set<string>();
  for (const [pointer, repo] of places) {
    if (repo === undefined) continue;
    const message = await repoProblem(repo);
    if (message === undefined) good.add(repo);
    else errors.push({ pointer, message });
  }
  if (plan.base === undefined) return errors;
  if (good.size === 0 && errors.length === 0) {
    errors.push({ pointer: '/base', message: 'needs a git repository: name one in `repo`' });
  }
  for (const repo of good) {
    const found = await git(
      parts,
      repo,
      'rev-parse',
      '--verify',
      '--quiet',
      `${plan.base}^{commit}`,
    );
    if (found.isOk) continue;
    const message = `names "${plan.base}", which is no branch or commit of ${repo}`;
    errors.push({ pointer: '/base', message });
  }
  return errors;
}

/** Both forms of a race as one. */
export function raceOf(race: TaskDefinition['race']): DaemonSchema<'Race'> | undefined {
  return Array.isArray(race) ? { backends: race } : race;
}

const defaultRounds = 3;

/** Both forms of feedback as one. */
export function feedbackOf(feedback: TaskDefinition['feedback']) {
  const { from = [], rounds = defaultRounds } = Array.isArray(feedback)
    ? { from: feedback }
    : (feedback ?? {});
  return { from, rounds };
}

/** The backend that a task names; undefined: any that is free. */
export function namedBackend(backend: string | undefined): string | undefined {
  return backend === undefined || anyBackend.has(backend) ? undefined : backend;
}

/** A plan before anything has run. */
export function newPlan(
  definition: PlanDefinition,
  { id, now, agent }: { id: string; now: string; agent: string | undefined },
): StoredPlan {
  return {
    id,
    title: definition.title,
    status: 'running',
    repo: definition.repo ?? null,
    base: definition.base ?? null,
    created_by: agent ?? null,
    tasks: definition.tasks.map((task) => ({
      key: task.key,
      title: task.title ?? task.key,
      // Whoever makes a plan can claim at once what waits for nothing.
      status: task.assignee === 'person' && !task.depends_on?.length ? 'ready' : 'pending',
      sessions: [],
      branch: null,
      result: null,
      verify: null,
      prompt: task.prompt ?? '',
      assignee: task.assignee ?? 'agent',
      depends_on: task.depends_on ?? [],
      claimed_by: null,
      waiting_for: null,
      race: [],
      merged: false,
    })),
    created_at: now,
    updated_at: now,
  };
}
