import { stat } from 'node:fs/promises';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { isUtf8 } from 'node:buffer';
import { nearest } from '@millrace/kit/nearest';
import { UsageError, type FieldError } from '@millrace/kit/errors';
import { parseYamlText } from '@millrace/kit/config';
import { z } from 'zod';
import type { PipelineDefinition, Job } from '../core/pipeline.js';
import { fail } from '../core/api.js';

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

const complaint = /^body(?::(\d+):(\d+))?: not valid YAML: ([^\n]*)/;

/** Parses a YAML body. Errors name line and column. */
export function parseYamlBody(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw new Error('the bytes are not UTF-8');
  try {
    return parseYamlText('body', bytes.toString('utf8'), z.unknown()).value;
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    const [, line, column, what = error.message] = complaint.exec(error.message) ?? [];
    const place = line === undefined ? '' : ` at line ${line}, column ${column}`;
    throw new Error(`${what}${place}`, { cause: error });
  }
}

const placeholder = /\{\{\s*jobs\.([A-Za-z0-9][A-Za-z0-9._-]{0,63})\.output\s*\}\}/g;

/** Maximum length of a prompt, including the outputs of dependencies. */
const maxPromptLength = 262_144;
/** Maximum length of all outputs together: some programs accept at most 128 KiB of prompt. */
const maxOutputsLength = 65_536;

/** Ids of the jobs whose output the prompt references. */
export function placeholdersIn(prompt: string): string[] {
  return [...new Set([...prompt.matchAll(placeholder)].map(([, id]) => id!))];
}

/**
 * The prompt of a job's agent, with `{{jobs.<id>.output}}` replaced, followed by the outputs of
 * dependencies that the prompt does not reference. Outputs are cut at the front to their share,
 * because the end of an output is its conclusion.
 */
export function promptOf(job: Pick<Job, 'prompt' | 'depends_on'>, jobs: readonly Job[]): string {
  const byId = new Map(jobs.map((each) => [each.id, each]));
  const inPlace = [...job.prompt.matchAll(placeholder)].map(([, id]) => id!);
  const apart = job.depends_on.filter((id) => !inPlace.includes(id));
  const spare = maxPromptLength - job.prompt.length - apart.length * maxHeadingLength;
  // Without room for headings, outputs are not appended.
  const below = spare > 0 ? apart : [];
  const room = Math.max(0, spare);
  const count = inPlace.length + below.length;
  const share = count === 0 ? 0 : Math.floor(Math.min(maxOutputsLength, room) / count);
  const textOf = (id: string) => outputOf(byId.get(id), share);
  // One pass, so that placeholders inside an output are not replaced.
  const head = job.prompt.replaceAll(placeholder, (_all, id: string) => textOf(id));
  const parts = below.map((id) => `## Output of ${id} (${byId.get(id)!.status})\n\n${textOf(id)}`);
  return [head, ...parts].join('\n\n');
}

/** An id of 64 characters, its status, and the markup around them. */
const maxHeadingLength = 128;

function outputOf(job: Job | undefined, most: number): string {
  const said = job?.output ?? '';
  if (said === '') return job?.status === 'skipped' ? '(skipped)' : '(no output)';
  if (said.length <= most) return said;
  // Omit an output of which only the cut mark would fit.
  return most <= cutMark.length ? '' : cutMark + said.slice(cutMark.length - most).toWellFormed();
}

const cutMark = '[...] ';

const encoder = new TextEncoder();

/** The end of a text in at most `maxBytes` of UTF-8, from the start of a line if possible. */
export function tailOf(text: string, maxBytes: number): string {
  const clean = text.trim().toWellFormed().replaceAll('\0', '\u{fffd}');
  const bytes = encoder.encode(clean);
  if (bytes.length <= maxBytes) return clean;
  let from = bytes.length - maxBytes;
  // Do not split a character.
  while (from < bytes.length && (bytes[from]! & 0xc0) === 0x80) from++;
  const tail = new TextDecoder().decode(bytes.subarray(from));
  const line = tail.indexOf('\n');
  // Keep a partial first line that is most of the text.
  return line === -1 || line > tail.length / 2 ? tail : tail.slice(line + 1);
}
