import { stat } from 'node:fs/promises';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { nearest } from '@millrace/kit/nearest';
import type { FieldError } from '@millrace/kit/errors';
import type { PipelineDefinition } from '../core/pipeline.js';
import { fail } from '../core/refusals.js';
import { placeholdersIn } from './prompt.js';

type Jobs = PipelineDefinition['jobs'];

/** Validates the dependency graph of the jobs, and names every wrong place. */
export function checkDefinition({ jobs }: PipelineDefinition): void {
  const errors = [...repeatedIds(jobs), ...unknownDependencies(jobs)];
  if (errors.length === 0) errors.push(...cycles(jobs));
  // Ancestors are only defined for an acyclic graph.
  if (errors.length === 0) errors.push(...wrongPlaceholders(jobs));
  if (errors.length > 0) throw invalid(errors);
}

/** Refuses a repository that does not exist, before any job starts. */
export async function checkRepo({ repo }: PipelineDefinition): Promise<void> {
  const problem = repo === undefined ? undefined : await problemWith(repo);
  if (problem !== undefined) throw invalid([{ pointer: '/repo', message: problem }]);
}

async function problemWith(repo: string): Promise<string | undefined> {
  if (repo.includes('\0')) return 'must not contain NUL';
  if (!isAbsolute(repo)) return 'must be an absolute path';
  const found = await stat(repo).catch(() => undefined);
  if (!found) return 'does not exist';
  if (!found.isDirectory()) return 'is not a directory';
  for (let here = resolve(repo); ; here = dirname(here)) {
    if (await stat(join(here, '.git')).catch(() => undefined)) return undefined;
    if (here === dirname(here)) return 'is not in a git repository';
  }
}

function repeatedIds(jobs: Jobs): FieldError[] {
  const first = new Map<string, number>();
  const errors: FieldError[] = [];
  for (const [index, { id }] of jobs.entries()) {
    const before = first.get(id);
    if (before === undefined) first.set(id, index);
    else {
      const message = `is also the id of /jobs/${before}: give each job a unique id`;
      errors.push({ pointer: `/jobs/${index}/id`, message });
    }
  }
  return errors;
}

function unknownDependencies(jobs: Jobs): FieldError[] {
  const ids = new Set(jobs.map(({ id }) => id));
  return jobs.flatMap(({ depends_on = [] }, index) =>
    depends_on.flatMap((id, at) => {
      if (ids.has(id)) return [];
      const meant = nearest(id, [...ids]);
      const hint = meant === undefined ? '' : `; did you mean ${meant}?`;
      const message = `names the job "${id}", which does not exist${hint}`;
      return [{ pointer: `/jobs/${index}/depends_on/${at}`, message }];
    }),
  );
}

/** Topological sort: removes jobs without open dependencies; the remaining ones form a cycle. */
function cycles(jobs: Jobs): FieldError[] {
  const waitsFor = new Map(jobs.map(({ id, depends_on = [] }) => [id, new Set(depends_on)]));
  const followers = new Map<string, string[]>(jobs.map(({ id }) => [id, []]));
  for (const { id, depends_on = [] } of jobs) {
    for (const before of depends_on) followers.get(before)!.push(id);
  }
  const free = jobs.filter(({ id }) => waitsFor.get(id)!.size === 0).map(({ id }) => id);
  for (let id = free.pop(); id !== undefined; id = free.pop()) {
    waitsFor.delete(id);
    for (const follower of followers.get(id)!) {
      const left = waitsFor.get(follower)!;
      left.delete(id);
      if (left.size === 0) free.push(follower);
    }
  }
  const circle = circleIn(waitsFor);
  if (circle.length === 0) return [];
  const index = jobs.findIndex(({ id }) => id === circle[0]);
  const message = `is a cycle: ${[...circle, circle[0]].join(' -> ')}`;
  return [{ pointer: `/jobs/${index}/depends_on`, message }];
}

/** Every remaining job depends on another one, so following dependencies finds the cycle. */
function circleIn(waitsFor: ReadonlyMap<string, ReadonlySet<string>>): string[] {
  const [start] = waitsFor.keys();
  if (start === undefined) return [];
  const path: string[] = [];
  let here = start;
  while (!path.includes(here)) {
    path.push(here);
    here = [...waitsFor.get(here)!].find((id) => waitsFor.has(id))!;
  }
  return path.slice(path.indexOf(here));
}

function wrongPlaceholders(jobs: Jobs): FieldError[] {
  const before = ancestors(jobs);
  return jobs.flatMap(({ id, prompt }, index) =>
    placeholdersIn(prompt)
      .filter((named) => !before.get(id)!.has(named))
      .map((named) => ({
        pointer: `/jobs/${index}/prompt`,
        message: `uses the output of "${named}", which the job does not depend on`,
      })),
  );
}

/** All direct and transitive dependencies of each job. */
function ancestors(jobs: Jobs): Map<string, Set<string>> {
  const byId = new Map(jobs.map((job) => [job.id, job]));
  const found = new Map<string, Set<string>>();
  const visit = (id: string): Set<string> => {
    const known = found.get(id);
    if (known) return known;
    const all = new Set<string>();
    for (const each of byId.get(id)!.depends_on ?? []) {
      all.add(each);
      for (const far of visit(each)) all.add(far);
    }
    found.set(id, all);
    return all;
  };
  for (const { id } of jobs) visit(id);
  return found;
}

function invalid(errors: readonly FieldError[]) {
  const [{ pointer, message }] = errors as [FieldError];
  const more = errors.length > 1 ? ` (and ${errors.length - 1} more)` : '';
  return fail('INVALID_REQUEST', `${pointer} ${message}${more}.`, { errors });
}
