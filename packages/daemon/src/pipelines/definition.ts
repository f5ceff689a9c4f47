import { isUtf8 } from 'node:buffer';
import { UsageError, type FieldError } from '@millrace/kit/errors';
import { parseYamlText } from '@millrace/kit/config';
import { z } from 'zod';
import type { PipelineDefinition, Job } from '../core/pipeline.js';
import { ancestorsOf, graphFaults, invalidFields } from '../core/dependency-graph.js';
import { repoProblem } from '../sessions/worktrees.js';

type Jobs = PipelineDefinition['jobs'];

/** Validates the dependency graph of the jobs, and names every wrong place. */
export function checkDefinition({ jobs }: PipelineDefinition): void {
  const errors = graphFaults(jobs, { list: 'jobs', item: 'job', id: 'id' });
  // Ancestors are only defined for an acyclic graph.
  if (errors.length === 0) errors.push(...wrongPlaceholders(jobs));
  if (errors.length > 0) throw invalidFields(errors);
}

/** Refuses a repository that does not exist, before any job starts. */
export async function checkRepo({ repo }: PipelineDefinition): Promise<void> {
  const problem = repo === undefined ? undefined : await repoProblem(repo);
  if (problem !== undefined) throw invalidFields([{ pointer: '/repo', message: problem }]);
}

function wrongPlaceholders(jobs: Jobs): FieldError[] {
  const before = ancestorsOf(jobs);
  return jobs.flatMap(({ id, prompt }, index) =>
    placeholdersIn(prompt)
      .filter((named) => !before.get(id)!.has(named))
      .map((named) => ({
        pointer: `/jobs/${index}/prompt`,
        message: `uses the output of "${named}", which the job does not depend on`,
      })),
  );
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
