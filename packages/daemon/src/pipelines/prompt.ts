import type { Job } from '../core/pipeline.js';

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
