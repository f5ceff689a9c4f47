import type { Job } from '../core/pipeline.js';

const placeholder = /\{\{\s*jobs\.([A-Za-z0-9][A-Za-z0-9._-]{0,63})\.output\s*\}\}/g;

/** A prompt has at most this many characters, what is handed on to it included. */
const maxPromptLength = 262_144;
/** What all dependencies together may add: some programs take a prompt of 128 KiB at most. */
const maxOutputsLength = 65_536;

/** The ids of the jobs whose output a prompt asks for in place. */
export function placeholdersIn(prompt: string): string[] {
  return [...new Set([...prompt.matchAll(placeholder)].map(([, id]) => id!))];
}

/**
 * What a job's agent is told: the prompt, with `{{jobs.<id>.output}}` replaced, and below it what
 * the jobs before it said, unless the prompt has that in it already. Every output is cut to its
 * share from the front, for the end of what an agent says is what it came to.
 */
export function promptOf(job: Pick<Job, 'prompt' | 'depends_on'>, jobs: readonly Job[]): string {
  const byId = new Map(jobs.map((each) => [each.id, each]));
  const inPlace = [...job.prompt.matchAll(placeholder)].map(([, id]) => id!);
  const apart = job.depends_on.filter((id) => !inPlace.includes(id));
  const spare = maxPromptLength - job.prompt.length - apart.length * maxHeadingLength;
  // A prompt that leaves no room even for headings goes without them.
  const below = spare > 0 ? apart : [];
  const room = Math.max(0, spare);
  const count = inPlace.length + below.length;
  const share = count === 0 ? 0 : Math.floor(Math.min(maxOutputsLength, room) / count);
  const textOf = (id: string) => outputOf(byId.get(id), share);
  // In one go: an output that happens to hold a placeholder is only text.
  const head = job.prompt.replaceAll(placeholder, (_all, id: string) => textOf(id));
  const parts = below.map((id) => `## Output of ${id} (${byId.get(id)!.status})\n\n${textOf(id)}`);
  return [head, ...parts].join('\n\n');
}

/** An id of 64 characters, its status, and the marks around them. */
const maxHeadingLength = 128;

function outputOf(job: Job | undefined, most: number): string {
  const said = job?.output ?? '';
  if (said === '') return job?.status === 'skipped' ? '(skipped)' : '(no output)';
  if (said.length <= most) return said;
  // Not so little that it would only be a mark that something is missing.
  return most <= cutMark.length ? '' : cutMark + said.slice(cutMark.length - most).toWellFormed();
}

const cutMark = '[...] ';
